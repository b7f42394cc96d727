"""The page's server: files, a stream of frames, and what viewers ask for; a token guards all."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from dtsvm.errors import DtsvmError
from dtsvm.ui.page.scene import Scene

__all__ = ["COOKIE", "make_app"]

COOKIE = "dtsvm-token"
UPDATES_A_SECOND = 10
ALIVE_SECONDS = 5.0  # a comment so often tells a browser that the stream stands
MOST_BYTES = 10_000  # of what a viewer asks for
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
Answer = Callable[[Request], Awaitable[Response]]


def make_app(scene: Scene, token: str, is_ending: Callable[[], bool]) -> Starlette:
    """Return the web application that shows a scene to whoever has the token.

    Parameters
    ----------
    scene : Scene
        What is shown.
    token : str
        What a viewer must have: in the address the first time, then in a cookie.
    is_ending : callable
        Whether the server is about to stop; streams then end by themselves.
    """

    def guarded(answer: Answer) -> Answer:
        async def check(request: Request) -> Response:
            if not _has_token(request, token):
                return PlainTextResponse(
                    "403: this page needs its token. Open the address that dtsvm printed.\n",
                    status_code=403,
                    headers=HEADERS,
                )
            return await answer(request)

        return check

    async def index(request: Request) -> Response:
        if "token" in request.query_params:
            home = Response(status_code=303, headers={**HEADERS, "location": "/"})
            # Lax: the address may have been clicked in a terminal that is itself a page.
            home.set_cookie(_cookie(request), token, httponly=True, samesite="lax")
            return home
        return _static("index.html")

    async def static(request: Request) -> Response:
        return _static(request.path_params["name"])

    async def frames(request: Request) -> Response:
        stream = _stream(scene, request, is_ending)
        headers = {**HEADERS, "x-accel-buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def frame(request: Request) -> Response:
        found = await asyncio.to_thread(scene.frame)
        return JSONResponse(found, headers=HEADERS)

    async def do(request: Request) -> Response:
        return await _carry_out(scene, request)

    return Starlette(
        routes=[
            Route("/", guarded(index)),
            Route("/static/{name}", guarded(static)),
            Route("/frames", guarded(frames)),
            Route("/frame", guarded(frame)),
            Route("/do", guarded(do), methods=["POST"]),
        ]
    )


def _cookie(request: Request) -> str:
    """Name the cookie after the port: cookies of one host are shared by all its ports."""
    return f"{COOKIE}-{request.scope['server'][1]}"


def _has_token(request: Request, token: str) -> bool:
    given = request.query_params.get("token") or request.cookies.get(_cookie(request)) or ""
    return hmac.compare_digest(given.encode(), token.encode())


def _static(name: str) -> Response:
    file = resources.files("dtsvm.ui.page").joinpath("static", name)
    kind = KINDS.get(name.rpartition(".")[2])
    if kind is None or not file.is_file():
        return PlainTextResponse("404: no such file.\n", status_code=404, headers=HEADERS)
    return Response(file.read_bytes(), headers={**HEADERS, "content-type": kind})


async def _stream(
    scene: Scene, request: Request, is_ending: Callable[[], bool]
) -> AsyncIterator[str]:
    """Send a frame whenever something has changed, ten times a second at most."""
    now = asyncio.get_running_loop().time
    seen, rows, due, said = -1, 0, now(), now()
    while not is_ending() and not await request.is_disconnected():
        if scene.version != seen:
            seen, said = scene.version, now()
            found = await asyncio.to_thread(scene.frame, rows)
            rows = found["history"]["next"]
            yield f"data: {json.dumps(found, allow_nan=False)}\n\n"
        elif now() - said >= ALIVE_SECONDS:
            said = now()
            yield ": alive\n\n"
        due = max(due + 1 / UPDATES_A_SECOND, now())  # what a frame took is not waited for again
        await asyncio.sleep(due - now())


async def _carry_out(scene: Scene, request: Request) -> Response:
    """Do what was asked for; a refusal is one sentence, for the viewer and for the page."""
    if not scene.can_change:
        return _refusal(scene, 403, "This page only looks. Start it with --control to change.")
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return _refusal(scene, 415, "What is asked for must be JSON.")
    try:
        asked: Any = json.loads((await request.body())[:MOST_BYTES])
        action, what = asked["action"], asked.get("what", {})
        said = await asyncio.to_thread(scene.do, action, what)
    except DtsvmError as error:
        return _refusal(scene, 200, str(error))  # understood, and refused
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return _refusal(scene, 400, f"That cannot be asked for ({type(error).__name__}: {error}).")
    return JSONResponse({"said": said}, headers=HEADERS)


def _refusal(scene: Scene, status: int, sentence: str) -> Response:
    scene.refuse(sentence)
    return JSONResponse({"refused": sentence}, status_code=status, headers=HEADERS)
