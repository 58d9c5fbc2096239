"""Asks DNS servers plain questions, many at a time, and puts each answer into one short text.

A text is "TTL rdata | rdata" with sorted rdata for an RRset, "none" where the name or the type does not exist, "silent" without
an answer in time, and otherwise what came instead: "referral", "alias", "lame" or the response code.
"""

import ctypes
import functools
import random
import select
import socket
import struct
import sys
import time

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype

TIMEOUT = 1.0
PORT = 5353


def describe(reply, name, rdtype):
    """Returns the text for a reply to the question for name and type."""
    code = dns.rcode.to_text(reply.rcode())
    authoritative = bool(reply.flags & dns.flags.AA)
    for section in (reply.answer, reply.authority):
        for rrset in section:
            if rrset.name == name and rrset.rdtype == rdtype:
                # The NS records of a delegation are in the authority section, of an answer without authority.
                if section is reply.answer and not authoritative:
                    return "lame"
                return f"{rrset.ttl} " + " | ".join(sorted(rdata.to_text() for rdata in rrset))
    if code == "NXDOMAIN" and authoritative:
        return "none"
    if code != "NOERROR":
        return code
    if any(rrset.rdtype == dns.rdatatype.CNAME for rrset in reply.answer):
        return "alias"
    if authoritative:
        return "none"
    return "referral" if any(rrset.rdtype == dns.rdatatype.NS for rrset in reply.authority) else "lame"


@functools.cache
def client_wire(zone):
    """Returns the question for the SOA of a zone, without its ID."""
    return dns.message.make_query(zone, "SOA").to_wire()[2:]


def client_text(address, protocol, zone, port=53):
    """Returns what a client without a key gets to the question for the SOA of a zone: "answer" with authority, "silent", "closed" where
    nobody listens, "lame", or the response code. A question that nothing answers costs next to nothing: there are many."""
    wire = random.randbytes(2) + client_wire(zone)
    try:
        reply = dns.message.from_wire((exchange_udp if protocol == "UDP" else exchange_tcp)(wire, (address, int(port))))
    except ConnectionError:
        return "closed"
    except (OSError, EOFError, dns.exception.DNSException):
        return "silent"
    code = dns.rcode.to_text(reply.rcode())
    if code != "NOERROR":
        return code
    return "answer" if reply.flags & dns.flags.AA and reply.answer else "lame"


def exchange_udp(wire, to):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.connect(to)
        connection.send(wire)
        deadline = time.monotonic() + TIMEOUT
        while (left := deadline - time.monotonic()) > 0:
            connection.settimeout(left)
            reply = connection.recv(65535)
            if reply[:2] == wire[:2]:
                return reply
    raise TimeoutError


def exchange_tcp(wire, to):
    with socket.create_connection(to, TIMEOUT) as connection, connection.makefile("rb") as stream:
        connection.sendall(struct.pack("!H", len(wire)) + wire)
        size = stream.read(2)
        if len(size) < 2:
            raise EOFError
        reply = stream.read(*struct.unpack("!H", size))
    if reply[:2] != wire[:2]:
        raise EOFError
    return reply


def enter_network(name):
    """Moves the calling thread into a named network namespace."""
    with open("/run/netns/" + name, encoding="utf-8") as network:
        if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), 0):
            raise OSError(ctypes.get_errno(), "entering network " + name)


class Asker:
    """Asks one set of questions of several servers. It remembers what a message means, because most are like the one before."""

    def __init__(self, port=PORT):
        self._port = port
        self._wires = {}
        self._texts = {}
        self._id = 0

    def _wire(self, key):
        if key not in self._wires:
            name, rdtype = key.split(" ")
            query = dns.message.make_query(name, rdtype, id=0)
            query.flags = 0
            self._wires[key] = query.to_wire()[2:]
        return self._wires[key]

    def _text(self, key, wire):
        memory = (key, wire[2:])
        if memory not in self._texts:
            if len(self._texts) > 100_000:
                self._texts.clear()
            name, rdtype = key.split(" ")
            try:
                text = describe(dns.message.from_wire(wire), dns.name.from_text(name), dns.rdatatype.from_text(rdtype))
            except Exception as error:  # whatever a server sends is an observation
                text = "unreadable: " + type(error).__name__
            self._texts[memory] = text
        return self._texts[memory]

    def ask(self, address, keys):
        """Asks a server about all keys ("name type") at once and returns {key: text}."""
        waiting, found = {}, {}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
            connection.setblocking(False)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            for key in keys:
                self._id = (self._id + 1) & 0xFFFF
                waiting[self._id] = key
                try:
                    connection.sendto(struct.pack("!H", self._id) + self._wire(key), (address, self._port))
                except OSError:
                    pass  # no route: silence
            deadline = time.monotonic() + TIMEOUT
            while waiting and (left := deadline - time.monotonic()) > 0:
                if select.select([connection], [], [], left)[0]:
                    self._receive(connection, address, waiting, found)
        return found | dict.fromkeys(waiting.values(), "silent")

    def _receive(self, connection, address, waiting, found):
        while waiting:
            try:
                wire, sender = connection.recvfrom(65535)
            except OSError:
                return
            if len(wire) >= 12 and sender[0] == address and (key := waiting.pop(struct.unpack("!H", wire[:2])[0], None)):
                found[key] = self._text(key, wire)


if __name__ == "__main__":
    if sys.argv[1] == "client":
        print(client_text(*sys.argv[2:]), end="")
        sys.exit()
    SERVER, AT, QUESTION = sys.argv[1:]
    print(Asker(int(AT)).ask(SERVER, [QUESTION])[QUESTION], end="")
