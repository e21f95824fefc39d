"""The browser of `tests/report`, for the site."""

from tests.report import conftest

browser = conftest.browser
pytest_collection_modifyitems = conftest.pytest_collection_modifyitems
