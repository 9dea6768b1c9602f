"""What the tests do with the installed package: `scenarios.py NAME` reads its input from stdin and prints JSON."""

import json
import os
import re
import sys
import threading
import time
from unittest import mock

import httpx
import vodbox
from vodbox import Client
from vodbox.uploads import UploadState

given = json.load(sys.stdin) if sys.argv[1] != "interrupted" else json.loads(sys.argv[2])


def client(**options):
    options.setdefault("api_key", given.get("key"))
    return Client(given["base"], **options)


def refusal(call):
    """The class and the fields of the error that a call raises."""
    try:
        call()
    except (vodbox.VodboxError, vodbox.WebhookVerificationError) as error:
        fields = {name: getattr(error, name, None) for name in ("status", "code", "details", "request_id")}
        return {"class": type(error).__name__, "text": str(error), **fields}
    return None


def operations():
    def snake(name):
        return re.sub("([A-Z])", lambda match: "_" + match[1].lower(), name)

    document = client().request("GET", "/api/v1/openapi.json", auth=())
    ids = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    missing = [name for name in ids if not callable(getattr(Client, snake(name), None))]
    undocumented = [name for name in ids if not getattr(Client, snake(name)).__doc__]
    return {"count": len(ids), "missing": missing, "undocumented": undocumented}


def created(api, title, **options):
    """Creates an asset without an upload."""
    status = {"input_status": "pending", "playback_status": "draft"}
    sizes = {"source_bytes": 0, "storage_bytes": 0, "duration_seconds": 0}
    source = {"source_key": f"tenants/{given['tenant_id']}/sources/film.mp4"}
    fields = {"title": title, **status, **sizes, **source}
    return api.create_asset(tenant_id=given["tenant_id"], video_asset=fields, **options)["asset"]


def records():
    with client() as api:
        made = [created(api, f"Film {number}") for number in range(5)]
        pages = [[each["title"] for each in page] for page in api.list_assets(limit=2).pages()]
        second = next(api.list_assets(limit=2).pages()).next_cursor
        changed = api.update_asset(made[0]["id"], video_asset={"title": "Épisode “1”", "description": None})
        tags = api.update_tags(made[0]["id"], body={"year": 2026, "draft": True})
        found = api.list_assets(q="Épisode").first()
        same = [created(api, "Once", idempotency_key="once")["id"] for _ in range(2)]
        subtitle = api.create_subtitle(
            made[0]["id"], file="WEBVTT\n\n00:00.000 --> 00:02.000\nHello\n", language="en", label="English", is_default=True
        )
        rows = api.import_assets(content=b"title,description,tags,original_filename\nNew,,,none.mp4\n")
        exported = api.export_assets(format="csv")
        api.delete_asset(made[1]["id"])
        return {
            "pages": pages,
            "all": [each["title"] for each in api.list_assets(limit=2)],
            "continued": [each["title"] for each in api.list_assets(limit=2, cursor=second)],
            "changed": [changed["title"], changed["description"], changed["tags"], tags, found["id"] == made[0]["id"]],
            "same": same[0] == same[1],
            "subtitle": [subtitle["label"], subtitle["is_default"]],
            "unmatched": [row["reason"] for row in rows["unmatched"]],
            "exported": exported.splitlines()[0],
            "deleted": refusal(lambda: api.get_asset(made[1]["id"])),
        }


def errors():
    api = client()
    asset = created(api, "Film")["id"]
    return {
        "not_found": refusal(lambda: api.get_asset(999_999)),
        "invalid": refusal(lambda: api.update_asset(asset, video_asset={"title": ""})),
        "conflict": refusal(lambda: api.delete_source(asset)),
        "unauthorized": refusal(lambda: client(api_key="svc_wrong").get_asset(asset)),
        "none": refusal(lambda: client(api_key=None).get_asset(asset)),
        "forbidden": refusal(lambda: client(api_key=given["reader"]).delete_asset(asset)),
        "unreachable": refusal(lambda: Client("http://127.0.0.1:1", max_retries=0).get_health()),
        "path": _value_error(lambda: api.delete_tag(asset, "..")),
    }


def _value_error(call):
    try:
        call()
    except (ValueError, TypeError) as error:
        return type(error).__name__


def retries():
    """Four threads share one client."""
    api = client()
    results = []

    def work(number):
        results.append(created(api, f"Retried {number}")["id"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    titles = [each["title"] for each in api.list_assets(q="Retried")]
    return {"ids": len(set(results)), "titles": sorted(titles)}


def fragile():
    started = time.monotonic()
    outcome = refusal(lambda: client(max_retries=2).revoke_api_key(1))
    return {"outcome": outcome, "seconds": time.monotonic() - started}


def unexpected():
    """What a proxy or another server answers."""
    return {
        "redirect": refusal(lambda: client(max_retries=0).get_asset(1)),
        "html": refusal(lambda: client(max_retries=0).get_asset(1)),
        "list": refusal(lambda: list(client(max_retries=0).list_assets())),
        "gateway": refusal(lambda: client(max_retries=0).get_asset(1)),
    }


def upload():
    seen = []
    api = client()
    before = api.transport.http.timeout.read
    asset = api.upload(
        given["file"],
        title="Clip",
        tags={"year": 2026},
        on_progress=lambda sent, total: seen.append([sent, total]),
        wait_until_ready=True,
        wait_timeout=100,
    )
    with open(given["file"], "rb") as file:
        other = api.upload(file, title="Open file")
    unknown = _value_error(lambda: api.upload(given["file"], titel="Clip"))
    failed = refusal(lambda: api.upload(given["text"], wait_until_ready=True, wait_timeout=100))
    return {
        "asset": asset,
        "seen": seen,
        "other": [other["title"], other["original_filename"]],
        "unknown": unknown,
        "failed": failed,
        "timeout": before,
    }


def interrupted():
    """Stops for ever once `stop_at` bytes are sent, until it is killed."""

    def stop(sent, total):
        if sent >= given["stop_at"]:
            print("reached", flush=True)
            threading.Event().wait()

    client().upload(given["file"], title="Interrupted", resume_file=given["state"], on_progress=stop)


def unsaved():
    """Ends after the server created the upload, before its id is stored."""
    save = UploadState.save

    def save_key_only(state):
        if state.upload_id is not None:
            raise KeyboardInterrupt
        save(state)

    with mock.patch.object(UploadState, "save", save_key_only):
        try:
            client().upload(given["file"], title="Interrupted", resume_file=given["state"])
        except KeyboardInterrupt:
            return {"left": os.path.exists(given["state"])}


def torn():
    asset = client().upload(given["file"], title="Torn")
    return {"status": asset["input_status"], "bytes": asset["source_bytes"]}


def headers():
    """Uploads, and records requests to other servers that have a credential."""
    requests = []

    class Recording(httpx.HTTPTransport):
        def handle_request(self, request):
            requests.append((str(request.url), {name.lower() for name in request.headers}))
            return super().handle_request(request)

    with httpx.Client(transport=Recording(), timeout=60) as http:
        asset = client(http=http).upload(given["file"])
    storage = [names for url, names in requests if not url.startswith(given["base"])]
    others = [sorted(names) for names in storage if names & {"x-api-key", "authorization", "cookie"}]
    return {"asset": asset["id"], "bytes": asset["source_bytes"], "parts": len(storage), "others": others}


def resumed():
    seen = []
    asset = client().upload(
        given["file"],
        title="Interrupted",
        resume_file=given["state"],
        on_progress=lambda sent, total: seen.append(sent),
    )
    return {"asset": asset["id"], "status": asset["input_status"], "first": seen[0], "left": os.path.exists(given["state"])}


def _peak_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def memory():
    api = client()
    api.upload(given["small"])
    before = _peak_bytes()
    asset = api.upload(given["large"])
    return {"grown": _peak_bytes() - before, "peak": _peak_bytes(), "bytes": asset["source_bytes"]}


def webhook():
    body, headers, secret = given["body"], given["headers"], given["secret"]

    def verify(body=body, headers=headers, secrets=secret, **options):
        return vodbox.verify_webhook(body, headers, secrets, **options)

    signature = headers["svc-signature"]
    late = mock.patch("time.time", return_value=time.time() + 301)
    early = mock.patch("time.time", return_value=time.time() - 400)

    def at(clock, **options):
        with clock:
            return verify(**options)

    def with_signature(value):
        return refusal(lambda: verify(headers={"Svc-Signature": value}))

    digits = signature.split(",")[0][2:]
    return {
        "event": verify(),
        "bytes": verify(body=body.encode())["id"],
        "pairs": verify(headers=[("Svc-Signature", signature)])["id"],
        "rotated": verify(secrets=["whsec_new", secret])["id"],
        "tolerant": at(late, tolerance_seconds=400)["id"],
        "refused": {
            "body": refusal(lambda: verify(body=body.replace("video", "vide0"))),
            "secret": refusal(lambda: verify(secrets=["whsec_new", "whsec_other"])),
            "old": refusal(lambda: at(late)),
            "future": refusal(lambda: at(early)),
            "missing": refusal(lambda: verify(headers={})),
            "time": with_signature(signature.replace(digits, str(int(digits) + 1))),
            "digits": with_signature(signature.replace(digits, "١٢٣")),
            "empty": with_signature(""),
            "unsigned": with_signature(f"t={digits}"),
            "unicode": with_signature(f"t={digits},v1=é"),
            "surrogate": with_signature(f"t={digits},v1=\udce9"),
            "text": refusal(lambda: verify(body="\udce9")),
            "long": with_signature(f"t={digits}" + ",v1=00" * 100_000),
        },
        "no_secret": _value_error(lambda: verify(secrets="")),
    }


def tokens():
    api = client()
    asset = api.get_asset(given["asset"])
    result = {}
    for name, algorithm in (("RS256", "RS256"), ("EdDSA", "EdDSA")):
        key = api.create_signing_key(tenant_id=given["tenant_id"], name=name, algorithm=algorithm)
        options = {"key_id": key["key_id"], "private_key": key["private_key"]}
        with mock.patch("time.time", return_value=time.time() - 7200):
            expired = vodbox.sign_playback_token(asset["external_id"], expires_in=3600, **options)
        result[name] = {
            "valid": vodbox.sign_playback_token(asset["external_id"], **options),
            "number": vodbox.sign_playback_token(asset["id"], **options),
            "expired": expired,
            "thumbnail": vodbox.sign_playback_token(asset["external_id"], audience="t", **options),
            "future": vodbox.sign_playback_token(asset["external_id"], not_before=time.time() + 600, **options),
            "other": vodbox.sign_playback_token("vid_other", **options),
        }
    return result


print(json.dumps(globals()[sys.argv[1]]()))
