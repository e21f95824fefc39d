"""/object and /object/picture: the text and the picture of one object, for the live page."""

import asyncio
from collections import OrderedDict
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from stream_engine.report.object_files import BadObjects, ObjectListing, small_jpeg

MAX_SMALL_PICTURES = 2000  # small pictures in memory, of some 5 KB each
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, max-age=600",
}


class ObjectPictures:
    """The routes; `listing` has the objects, None if the run has none. /object without a name lists those with a
    picture.

    Only what the folder or the table listed at the start is served, looked up by the object's name: no part of a
    request is ever a path. A picture is opened as one of `KINDS`, made small and sent as a JPEG, whatever the file is
    called, so that nothing in it can be anything else to a browser.
    """

    def __init__(self, listing: ObjectListing | None):
        self._listing = listing
        self._small: OrderedDict[Path, bytes] = OrderedDict()  # the last used at the end
        self._lock = asyncio.Lock()  # one picture is made at a time: they cost the engine's process

    def routes(self) -> list[Route]:
        """What an application serves; nothing where no objects were listed."""
        if self._listing is None:
            return []
        return [Route("/object", self._about), Route("/object/picture", self._picture)]

    async def _about(self, request: Request) -> Response:
        listing = self._listing or ObjectListing({}, {})
        name = request.query_params.get("name")
        if name is None:
            return JSONResponse({"pictures": list(listing.pictures)}, headers=_HEADERS)
        about = {"picture": name in listing.pictures, "text": listing.texts.get(name, "")}
        return JSONResponse(about, headers=_HEADERS)

    async def _picture(self, request: Request) -> Response:
        path = self._listing and self._listing.pictures.get(request.query_params.get("name", ""))
        if not path:
            return PlainTextResponse("no picture of such an object\n", 404, _HEADERS)
        async with self._lock:
            content = self._small.pop(path, None)
            if content is None:
                try:
                    content = await run_in_threadpool(small_jpeg, path)
                except BadObjects as error:
                    return PlainTextResponse(f"{error}\n", 404, _HEADERS)
            self._small[path] = content
            if len(self._small) > MAX_SMALL_PICTURES:
                self._small.popitem(last=False)
        return Response(content, headers=_HEADERS, media_type="image/jpeg")
