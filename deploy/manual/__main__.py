"""Write every page that is made of the code."""

from deploy.manual import DOCS, PAGES, text_of

for page in PAGES:
    path = DOCS / page
    path.parent.mkdir(exist_ok=True)
    path.write_text(text_of(page), encoding="utf-8")
    print(path)
