"""Asks a decider of Sluice about requests, with Python's standard library alone (3.8 or later).

    npx @sluice/cli serve --document ../policies.yaml --dialect json
    python3 sluice_client.py http://127.0.0.1:9190 /login POST 192.0.2.7
"""

import http.client
import json
import os
import sys
import time
import urllib.parse

# The decider closes a connection that has idled for 75 s.
IDLE_SECONDS = 60


class DeciderUnavailable(Exception):
    """The decider is away, or responds with an error: the caller chooses whether to admit the request."""


class Decider:
    """One connection to a decider. Not for several threads at a time: each needs its own."""

    def __init__(self, url, token=None, timeout=2.0):
        """timeout: in seconds, for each step on the network; longer than the decider waits for Redis."""
        parts = urllib.parse.urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._used_at = time.monotonic()
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = "Bearer " + token

    def decide(self, path, method="GET", ip=None, **more):
        """Decides on one request. more: headers, keys, tiers, cost. Returns a dict; `allowed` says whether it may go on."""
        return self._ask(_described(path, method, ip, more))

    def decide_all(self, requests):
        """Decides on up to 100 requests, dicts such as {"path": "/login", "ip": "192.0.2.7"}. Returns a list of dicts."""
        return self._ask({"requests": list(requests)})["decisions"]

    def close(self):
        self._connection.close()

    def _ask(self, question):
        body = json.dumps(question).encode("utf-8")
        now = time.monotonic()
        if now - self._used_at > IDLE_SECONDS:
            self._connection.close()
        self._used_at = now
        try:
            # Sent once: a second time could count the request twice.
            self._connection.request("POST", "/v1/decide", body, self._headers)
            response = self._connection.getresponse()
            text = response.read()
            if response.status == 200:
                return json.loads(text)
            reason = "%d %s" % (response.status, text.decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = str(error)
        # The next request opens a new connection.
        self._connection.close()
        raise DeciderUnavailable(reason)


def _described(path, method, ip, more):
    described = {"path": path, "method": method, **more}
    if ip is not None:
        described["ip"] = ip
    return described


if __name__ == "__main__":
    url, path, method, ip = sys.argv[1:5]
    decider = Decider(url, token=os.environ.get("SLUICE_TOKEN"))
    try:
        decision = decider.decide(path, method, ip)
    except DeciderUnavailable as error:
        print("unavailable", error)
        sys.exit(2)
    print(decision["status"], json.dumps(decision["headers"], sort_keys=True))
    sys.exit(0 if decision["allowed"] else 1)
