"""A client on the Python SDK; prints one line of JSON. Options as in common.mjs, `--help` lists them."""

import argparse
import json
import os
import sys
from typing import Any
from urllib.parse import urlsplit

import anyio
from mcp import Client, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

MODES = {"legacy": "legacy", "auto": "auto", "modern": "2026-07-28"}


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(usage="python_client.py [options] URL | [options] -- COMMAND ARGUMENT...")
    parser.add_argument("--mode", choices=MODES, default="auto", help="era of the protocol")
    parser.add_argument("--tool", help="call this tool after listing")
    parser.add_argument("--args", type=json.loads, default={}, help="its arguments, as JSON")
    parser.add_argument("--elicit", choices=["accept", "decline", "cancel"], help="offer elicitation, answer like this")
    parser.add_argument("--content", type=json.loads, help="what to accept with, as JSON (default: made from the form)")
    parser.add_argument("--sample", help="offer sampling and answer with this text")
    parser.add_argument("--progress", action="store_true", help="report the progress notifications of the call")
    parser.add_argument("--cancel-after", type=float, help="give up the call after so many milliseconds")
    parser.add_argument("--watch", help="watch this resource and the list of tools, report the news")
    parser.add_argument("--header", action="append", default=[], help="send this header: 'NAME: VALUE'")
    parser.add_argument("target", nargs="+")
    return parser.parse_args()


def transport(options: argparse.Namespace) -> Any:
    first, *rest = options.target
    if not first.startswith(("http:", "https:")):
        return StdioServerParameters(command=first, args=rest, env=dict(os.environ))
    headers = dict(line.split(": ", 1) for line in options.header)
    if urlsplit(first).path.startswith("/sse"):
        return sse_client(first, headers=headers)
    return streamable_http_client(first, http_client=create_mcp_http_client(headers=headers))


def fill(schema: dict[str, Any]) -> Any:
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    if "oneOf" in schema:
        return schema["oneOf"][0]["const"]
    return {"array": [], "string": "text", "boolean": True, "integer": 1, "number": 1}.get(schema.get("type", ""))


def callbacks(options: argparse.Namespace, seen: dict[str, Any]) -> dict[str, Any]:
    """The answers to the server's questions, each noted when it is asked."""

    async def answer_form(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        seen.setdefault("elicited", []).append(params.message)
        if options.elicit != "accept":
            return types.ElicitResult(action=options.elicit)
        form = getattr(params, "requested_schema", None) or {}
        filled = {name: fill(schema) for name, schema in form.get("properties", {}).items()}
        return types.ElicitResult(action="accept", content=options.content or filled)

    async def answer_model(_: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        seen.setdefault("sampled", []).append(getattr(params.messages[-1].content, "text", None))
        content = types.TextContent(type="text", text=options.sample)
        return types.CreateMessageResult(role="assistant", model="none", content=content)

    async def hear(message: Any) -> None:
        news = plain(message) if hasattr(message, "model_dump") else None
        method = (news or {}).get("method", "")
        if method.endswith(("/list_changed", "/updated")):
            entry = {"method": method}
            uri = (news.get("params") or {}).get("uri")
            seen["news"].append(entry | ({"uri": uri} if uri else {}))

    offered: dict[str, Any] = {}
    if options.watch:
        seen["news"] = []
        offered["message_handler"] = hear
    if options.elicit:
        offered["elicitation_callback"] = answer_form
    if options.sample is not None:
        offered["sampling_callback"] = answer_model
    return offered


async def call(client: Client, options: argparse.Namespace, seen: dict[str, Any]) -> None:
    async def on_progress(progress: float, total: float | None, _: str | None) -> None:
        seen["progress"].append({"progress": progress, "total": total})

    if options.progress:
        seen["progress"] = []
    limit = None if options.cancel_after is None else options.cancel_after / 1000
    with anyio.move_on_after(limit) as scope:
        result = await client.call_tool(
            options.tool, options.args, progress_callback=on_progress if options.progress else None
        )
        seen["result"] = plain(result)
    if scope.cancelled_caught:
        seen["cancelled"] = True
        seen["error"] = {"name": "Cancelled", "message": "given up"}
        # Giving up is itself a message, which has to leave before the connection closes.
        await anyio.sleep(0.3)


async def watched_call(client: Client, options: argparse.Namespace, seen: dict[str, Any]) -> None:
    """The call, with the news that come while it runs and shortly after."""
    if options.mode != "modern":
        await client.subscribe_resource(options.watch)
        await call(client, options, seen)
        await anyio.sleep(0.7)
        return
    async with client.listen(tools_list_changed=True, resource_subscriptions=[options.watch]):
        await call(client, options, seen)
        await anyio.sleep(0.7)


def plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True) if model is not None else None


def describe(error: BaseException) -> dict[str, Any]:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    data = getattr(error, "error", None)
    described = {"name": type(error).__name__, "message": str(error)}
    if data is not None:
        described |= {"code": data.code, "data": data.data}
    return described


async def main() -> int:
    options = read_options()
    seen: dict[str, Any] = {"client": "python", "mode": options.mode}
    failed = False
    try:
        async with Client(transport(options), mode=MODES[options.mode], **callbacks(options, seen)) as client:
            seen["server"] = plain(client.server_info)
            seen["protocol"] = client.protocol_version
            seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
            if options.tool:
                try:
                    await (watched_call if options.watch else call)(client, options, seen)
                except Exception as error:  # noqa: BLE001 - whatever went wrong is what the test wants to see
                    seen["error"] = describe(error)
    except BaseException as error:  # noqa: BLE001
        seen["error"] = describe(error)
        failed = True
    print(json.dumps(seen))
    return 1 if failed else 0


sys.exit(anyio.run(main))
