"""What others read before they install or cite: workflows and forms fit their schemas, and all say the same."""

import json
import re
import tomllib

import pytest
import yaml
from jsonschema.validators import validator_for
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
CONDA = ROOT / "deploy" / "conda" / "recipe.yaml"
SCHEMAS = {  # file -> its schema, as `check-jsonschema` carries it
    "CITATION.cff": "citation-file-format",
    ".readthedocs.yaml": "readthedocs",
    ".github/ISSUE_TEMPLATE/config.yml": "github-issue-config",
    **{f".github/ISSUE_TEMPLATE/{name}.yml": "github-issue-forms" for name in ("bug", "idea")},
    ".github/workflows/ci.yml": "github-workflows",
}
IN_CONDA = {"matplotlib": "matplotlib-base", "prometheus-client": "prometheus_client"}
WITH_EXTRAS = {"crc32c", "lz4", "python-snappy", "python-zstandard"}  # what kafka-python's extras bring


@pytest.mark.parametrize("name", SCHEMAS)
def test_it_fits_its_schema(name):
    folder = pytest.importorskip("check_jsonschema").__path__[0]
    with open(f"{folder}/builtin_schemas/vendor/{SCHEMAS[name]}.json") as file:
        schema = json.load(file)
    # YAML 1.1 reads the key `on` as true
    content = {"on" if key is True else key: value for key, value in yaml.safe_load((ROOT / name).read_text()).items()}
    assert [error.message for error in validator_for(schema)(schema).iter_errors(content)] == []


def test_a_workflow_runs_targets_that_there_are():
    targets = re.findall(r"run: make (\w+)", (ROOT / ".github/workflows/ci.yml").read_text())
    assert targets and set(targets) <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))


def test_all_say_the_same_of_title_authors_license_and_version():
    code, deposit = (json.loads((ROOT / name).read_text()) for name in ("codemeta.json", ".zenodo.json"))
    (author,) = CITATION["authors"]
    assert [author] == PROJECT["authors"] == deposit["creators"]
    assert [author["name"]] == [each["name"] for each in code["author"]]
    assert CITATION["title"] == code["name"] == deposit["title"] and code["identifier"] == PROJECT["name"]
    assert CITATION["license"] == PROJECT["license"] == deposit["license"]
    assert code["license"] == f"https://spdx.org/licenses/{PROJECT['license']}"
    assert set(CITATION["keywords"]) <= set(PROJECT["keywords"])
    assert set(CITATION["keywords"]) == set(deposit["keywords"]) == set(code["keywords"])
    assert not {"version", "softwareVersion"} & (CITATION.keys() | code.keys() | deposit.keys() | PROJECT.keys())


def rendered(recipe: str) -> dict:
    """What conda's builder makes of a recipe; `RattlerBuildError` for one that does not fit its schema."""
    from rattler_build import Stage0Recipe

    (variant,) = Stage0Recipe.from_yaml(recipe).render()
    return variant.recipe.to_dict()


def test_the_conda_recipe_needs_what_the_wheel_needs():
    recipe = rendered(CONDA.read_text())
    needed = {Requirement(each).name: Requirement(each).specifier for each in PROJECT["dependencies"]}
    listed = {name: limits for name, _, limits in (each.partition(" ") for each in recipe["requirements"]["run"])}
    assert listed.pop("python") == PROJECT["requires-python"]
    assert listed.keys() - WITH_EXTRAS == {IN_CONDA.get(name, name) for name in needed}
    assert all(SpecifierSet(listed[IN_CONDA.get(name, name)]) == limits for name, limits in needed.items())
    assert recipe["package"]["name"] == PROJECT["name"] and recipe["about"]["license"] == PROJECT["license"]
    scripts = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
