"""Reads from kube-apiserver over HTTPS, with nothing but Python's own library."""

import http.client
import json
import ssl
import urllib.parse

SYNC = "/apis/sync.bindy.firestoned.io/v1alpha1"
RECORDS = "/apis/bindy.firestoned.io/v1beta1"
ENDPOINTS = "/apis/externaldns.k8s.io/v1alpha1"


class Failed(Exception):
    """An answer that is an error."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text[:300]}")
        self.code = code


class Client:
    """One connection to kube-apiserver, made again after a failure. It is not safe for several threads."""

    def __init__(self, config, timeout=10):
        parts = urllib.parse.urlsplit(config["server"])
        self._host, self._timeout, self._connection = parts.netloc, timeout, None
        self._context = ssl.create_default_context(cafile=config["ca"])
        self._context.load_cert_chain(config["certificate"], config["key"])

    def _open(self):
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(self._host, context=self._context, timeout=self._timeout)
        return self._connection

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def stream(self, path):
        """Sends a GET and returns the response, to be read line by line."""
        try:
            connection = self._open()
            connection.request("GET", path, headers={"Accept": "application/json"})
            reply = connection.getresponse()
        except Exception:
            self.close()
            raise
        if reply.status != 200:
            text = reply.read().decode(errors="replace")
            raise Failed(reply.status, text)
        return reply

    def get(self, path):
        """Returns the object of a GET."""
        try:
            return json.loads(self.stream(path).read())
        except Failed:
            raise
        except Exception:
            self.close()
            raise
