"""Tests the judge with histories of a few moments, each true or false in one way: python3 judge_test.py."""

import unittest

import judge
import model

ADDRESS, POD = "10.0.0.1", "duo-primary-0-0"
KEY = "www.one.example. A"
RIGHT, OLD = "60 192.0.2.1", "60 192.0.2.9"
ITEM = {"name": "arecord.www", "uid": "u", "generation": 2, "reason": "", "message": ""}


def world():
    return {"op": "world", "fleets": {"duo": 1}, "balancers": ["198.51.100.11"],
            "zones": {"one.example": {"object": "one", "fleet": "duo", "ttl": 600, "keys": [KEY, "f0.one.example. TXT"], "foreign": ["f0.one.example. TXT"]}}}


def write(begin, generation, address, verb="apply"):
    return {"op": "write", "begin": begin, "end": begin + 0.1, "verb": verb, "kind": "ARecord", "name": "www", "zone": "one.example",
            "uid": "u", "generation": generation, "spec": {"name": "www", "ttl": 60, "ipv4Addresses": [address]}}


def sweep(begin, text, key=KEY):
    return {"op": "sweep", "begin": begin, "end": begin + 0.1, "address": ADDRESS, "answers": {key: text}}


def status(begin, state, phase=None, verb="get", generation=2):
    return {"op": "status", "verb": verb, "begin": begin, "end": begin + 0.1,
            "items": [ITEM | {"generation": generation, "phase": phase or ("InSync" if state == "InSync" else "OutOfSync"),
                              "rows": [[ADDRESS, state, "one.example", POD, ""]]}]}


def fault(kind, begin, end, scope=(POD,)):
    return {"op": "fault", "id": 1, "kind": kind, "target": POD, "scope": list(scope), "fleet": "duo", "begin": begin, "started": begin,
            "ending": end, "end": end}


def hand(begin, key=KEY):
    return {"op": "hand", "begin": begin, "end": begin + 0.1, "zone": "one.example", "pod": POD, "key": key, "fault": 1}


def clients(begin, end, text, address="10.96.0.1", vantage=""):
    """What a client gets every half a second."""
    return [{"op": "path", "begin": begin + i / 2, "end": begin + i / 2 + 0.1, "address": address, "protocol": "TCP", "zone": "one.example", "vantage": vantage, "text": text}
            for i in range(int((end - begin) * 2))]


def zone_with(paths, begin=20, answered=None):
    return {"op": "status", "verb": "get", "begin": begin, "end": begin + 0.1,
            "items": [ITEM | {"name": "dnszone.one", "phase": "OutOfSync", "rows": [], "paths": paths, "answered": answered}]}


BEFORE = [world(), {"op": "pods", "at": 0, "addresses": {ADDRESS: POD}}, write(1, 1, "192.0.2.9"), write(10, 2, "192.0.2.1")]


def judged(*entries):
    found = judge.Judge(judge.World([*BEFORE, *entries]))
    found.run()
    return found


class JudgeTest(unittest.TestCase):
    def check(self, entries, rows=None, **violations):
        found = judged(*entries)
        self.assertEqual(violations, {k: len(v) for k, v in found.violations.items()}, dict(found.violations))
        if rows is not None:
            self.assertEqual(rows, found.rows + found.quiet)

    def test_true_rows(self):
        self.check([sweep(20, RIGHT), status(21, "InSync"), sweep(22, RIGHT)], rows=1)
        self.check([sweep(20, OLD), status(21, "Stale"), sweep(22, OLD)], rows=1)

    def test_false_in_sync(self):
        for text in (OLD, "none", "referral", "REFUSED", "300 192.0.2.1", "60 192.0.2.1 | 192.0.2.2"):
            self.check([sweep(20, text), status(21, "InSync"), sweep(22, text)], rows=1, falseInSync=1)

    def test_false_out_of_sync(self):
        self.check([sweep(20, RIGHT), status(21, "Stale"), sweep(22, RIGHT)], rows=1, falseOutOfSync=1)

    def test_deleted_zone(self):
        """A zone that somebody deletes on a server may be back before the next question, and who asked in between was refused."""
        self.check([fault("delzone", 20.5, 20.6), sweep(20, RIGHT), status(21, "Refused"), sweep(22, RIGHT)], rows=0)
        self.check([fault("delzone", 20.5, 20.6), sweep(20, RIGHT), status(21, "Stale"), sweep(22, RIGHT)], rows=1, falseOutOfSync=1)
        self.check([fault("delzone", 18, 18.1), sweep(20, RIGHT), status(21, "Refused"), sweep(22, RIGHT)], rows=1, falseOutOfSync=1)
        self.check([fault("delzone", 20.5, 20.6, ["other"]), sweep(20, RIGHT), status(21, "Refused"), sweep(22, RIGHT)], rows=1, falseOutOfSync=1)

    def test_version_unseen(self):
        """What was declared may have come to a server, and its zone gone, between two questions."""
        near = [sweep(20.8, RIGHT), write(20.9, 3, "192.0.2.3"), status(21.2, "InSync", generation=3), sweep(21.4, "REFUSED")]
        self.check([*near, fault("delzone", 20.95, 21.3)], rows=0)
        self.check(near, rows=1, falseInSync=1)
        self.check([*near, fault("delzone", 20.95, 21.3, ["other"])], rows=1, falseInSync=1)
        self.check([*near[:2], sweep(21.05, RIGHT), *near[2:], fault("delzone", 20.95, 21.3)], rows=1, falseInSync=1)

    def test_false_phase(self):
        self.check([sweep(20, RIGHT), status(21, "InSync", phase="Failed"), sweep(22, RIGHT)], rows=1, falseOutOfSync=1)

    def test_clients_without_an_answer(self):
        """Rows are as ever while clients get no answer; whoever says that has to be right."""
        def not_answered(reason="NotAnswered"):
            found = status(21, "InSync", phase="OutOfSync")
            found["items"][0]["propagated"] = reason
            return found

        near = [sweep(20, RIGHT), sweep(22, RIGHT)]
        silent, answered = clients(15, 23, "silent"), clients(15, 23, "answer")
        self.check([sweep(20, OLD), *silent, not_answered(), sweep(22, OLD)], falseInSync=1)
        self.check([*near, not_answered()])
        self.check([*near, *silent, not_answered()])
        self.check([*near, *clients(15, 20, "answer"), *clients(20, 23, "silent"), not_answered()])
        self.check([*near, *answered, not_answered()], falseOutOfSync=1)
        self.check([*near, *answered, not_answered(), fault("kill-named", 18, 19)])
        self.check([*near, *answered, not_answered("Pending")])
        self.check([*near, *clients(1, 23, "answer"), not_answered("Pending")], falseOutOfSync=1)
        self.check([*near, *answered, *clients(15, 23, "silent", address="198.51.100.11"), not_answered()], falseOutOfSync=1)
        self.check([*near, *answered, *clients(15, 23, "silent", vantage="far"), not_answered()], falseOutOfSync=1)
        self.check([*near, *silent, status(21, "InSync")], falsePath=1)
        self.check([*near, *answered, status(21, "InSync")])
        self.check([*near, *clients(20.9, 23, "silent"), status(21, "InSync")])
        self.check([*near, *clients(15, 23, "REFUSED"), status(21, "InSync")])

    def test_refused_strangers(self):
        """The observer is a stranger. While a fault has servers refuse these, it does not see what they have."""
        refused = [sweep(20, "REFUSED"), status(21, "InSync"), sweep(22, "REFUSED")]
        self.check(refused, falseInSync=1)
        self.check([*refused, fault("allow-query", 15, 30)])

    def test_open_rows(self):
        """What may have been one or the other at a moment of the request is not judged."""
        for entries in (
            [sweep(20, OLD), status(21, "InSync"), sweep(22, RIGHT)],
            [sweep(20, RIGHT), status(21, "Stale"), sweep(22, OLD)],
            [sweep(20, "silent"), status(21, "InSync"), sweep(22, "silent")],
            [status(21, "InSync"), sweep(22, OLD)],
            [sweep(20, OLD), status(21, "InSync")],
            [sweep(20, OLD), status(21, "InSync"), hand(21.5), sweep(22, OLD)],
            [sweep(20, OLD), status(21, "InSync"), write(21.5, 3, "192.0.2.9"), sweep(22, OLD)],
        ):
            self.check(entries, rows=0)

    def test_span_of_a_list(self):
        """The answers behind a list may be one second old."""
        self.check([sweep(20, RIGHT), sweep(20.5, OLD), status(21, "InSync", verb="list"), sweep(22, OLD)], rows=0)
        self.check([sweep(19, OLD), sweep(20.5, OLD), status(21, "InSync", verb="list"), sweep(22, OLD)], rows=1, falseInSync=1)

    def test_shared_name(self):
        """While another object at the name changes, either value is right."""
        other = write(5, 1, "192.0.2.7") | {"name": "other", "uid": "v"}
        both = "60 192.0.2.1 | 192.0.2.7"
        self.check([other, sweep(20, both), status(21, "InSync"), sweep(22, both)], rows=1)
        lately = write(19, 2, "192.0.2.8") | {"name": "other", "uid": "v"}
        self.check([other, lately, sweep(20, both), status(21, "InSync"), sweep(22, both)], rows=0)
        gone = other | {"verb": "delete", "begin": 15, "end": 30}
        self.check([other, gone, sweep(20, both), status(21, "InSync"), sweep(22, both)], rows=0)
        self.check([other, gone, sweep(20, OLD), status(21, "InSync"), sweep(22, OLD)], rows=1, falseInSync=1)

    def test_deleted_object(self):
        deleted = write(15, 3, "", verb="delete")
        self.check([deleted, sweep(20, RIGHT), status(21, "InSync", generation=3), sweep(22, RIGHT)], rows=1, falseInSync=1)
        self.check([deleted, sweep(20, "none"), status(21, "InSync", generation=3), sweep(22, "none")], rows=1)
        for state in ("InSync", "Divergent"):
            self.check([deleted, sweep(20, "alias"), status(21, state, generation=3), sweep(22, "alias")], rows=0)

    def test_former_name(self):
        renamed = write(15, 3, "192.0.2.1")
        renamed["spec"]["name"] = "web"
        served = {"op": "sweep", "begin": 20, "end": 20.1, "address": ADDRESS,
                  "answers": {KEY: RIGHT, "web.one.example. A": RIGHT}}
        later = {"op": "sweep", "begin": 22, "end": 22.1, "address": ADDRESS,
                 "answers": {}}
        self.check([renamed, served, status(21, "InSync", generation=3), later], rows=1, falseInSync=1)

    def test_former_namesake(self):
        """What another object of the same name declared, and left behind, is not the business of this one."""
        again = write(12, 1, "192.0.2.5") | {"uid": "v", "spec": {"name": "other", "ttl": 60, "ipv4Addresses": ["192.0.2.5"]}}
        gone = write(11, 3, "", verb="delete")
        new = ITEM | {"uid": "v", "generation": 1, "phase": "InSync", "rows": [[ADDRESS, "InSync", "one.example", POD, ""]]}
        looks = [sweep(t, OLD) | {"answers": {KEY: OLD, "other.one.example. A": "60 192.0.2.5"}} for t in (20, 22)]
        self.check([gone, again, looks[0], status(21, "InSync") | {"items": [new]}, looks[1]], rows=1)

    def test_own_write(self):
        self.check([sweep(20, OLD), status(21, "InSync", generation=1), sweep(22, OLD)], rows=1, falseInSync=1)
        self.check([sweep(20, OLD), status(21, "Stale", phase="Propagating", generation=1), sweep(22, OLD)], rows=1, stale=1, falseOutOfSync=1)
        self.check([sweep(20, OLD), status(21, "InSync", generation=1, verb="list"), sweep(19, OLD)], rows=0)

    def test_write_without_change(self):
        again = write(15, 2, "192.0.2.1")
        self.check([again, sweep(20, RIGHT), status(21, "InSync"), sweep(22, RIGHT)], rows=1)

    def test_stopped_server(self):
        entries = [fault("stop-named", 20, 24), sweep(19, RIGHT), sweep(25, RIGHT)]
        self.check([*entries, status(21, "InSync")], rows=1, falseInSync=1)
        self.check([*entries, status(21, "Unreachable")], rows=1)
        self.check([*entries, status(24, "InSync")], rows=1)

    def test_unreachable(self):
        near = [sweep(20, RIGHT), status(21, "Unreachable"), sweep(22, RIGHT)]
        self.check(near, rows=1, falseOutOfSync=1)
        self.check([fault("cut-sidecar", 15, 19), *near], rows=0)

    def test_rest(self):
        rest = {"op": "rested", "begin": 30, "end": 31, "differ": []}
        conditions = {k: ["True", "", 2, ""] for k in ("Accepted", "Programmed", "Ready")}
        stored = {"op": "stored", "begin": 30.5, "end": 30.6,
                  "items": [{"name": "arecord.www", "uid": "u", "generation": 2, "deleting": False, "conditions": conditions, "serial": None}]}

        def transfer(**rrsets):
            return {"op": "transfer", "begin": 30.2, "end": 30.3, "zone": "one.example", "pod": POD, "serial": 7,
                    "rrsets": {KEY: RIGHT} | {f"{k}.one.example. TXT": v for k, v in rrsets.items()}}

        foreign = [hand(20, "f0.one.example. TXT"), {"op": "foreign", "zone": "one.example", "key": "f0.one.example. TXT", "value": '60 "x"', "begin": 20, "end": 21}]
        self.check([sweep(30.1, RIGHT), stored, transfer(), rest])
        self.check([sweep(30.1, OLD), stored, transfer(), rest], lost=1)
        self.check([sweep(30.1, RIGHT), stored, transfer(f0='60 "x"'), rest], lost=1)
        self.check([*foreign, sweep(30.1, RIGHT), stored, transfer(f0='60 "x"'), rest])
        self.check([*foreign, sweep(30.1, RIGHT), stored, transfer(), rest], lost=1)
        self.check([sweep(30.1, RIGHT), stored, transfer(), transfer() | {"serial": 8}, rest], lost=1)
        self.check([sweep(30.1, RIGHT), stored, transfer(), rest | {"differ": [["arecord.www", 1, 2]]}], watch=1)
        self.check([sweep(30.1, RIGHT), write(25, 3, "", verb="delete"), stored, sweep(30.3, "none"), rest], lost=1)
        for changed in (["False", "ReconcileFailed", 2, ""], ["True", "", 1, ""]):
            conditions["Programmed"] = changed
            self.check([sweep(30.1, RIGHT), stored, transfer(), rest], stored=1)

    def test_sentences(self):
        """Of each number and name in a message it is asked whether it is so; at rest each clause has to be known."""
        rest = {"op": "rested", "begin": 30, "end": 31, "differ": []}
        transfer = {"op": "transfer", "begin": 30.2, "end": 30.3, "zone": "one.example", "pod": POD, "serial": 7, "rrsets": {KEY: RIGHT}}

        def about(name, text, at):
            conditions = {k: ["True", "", 2, text] for k in ("Accepted", "Programmed", "Ready")[-1 if name.startswith("dnszone") else 0:]}
            return {"op": "stored", "begin": at, "end": at + 0.1,
                    "items": [{"name": name, "uid": "u", "generation": 2, "deleting": False, "conditions": conditions, "serial": None}]}

        for name, true, false, false_at_rest in (
            ("dnszone.one", "1 of 1 servers hold serial 7, 1 of 1 records are programmed", ("1 of 2 servers hold serial 7", "2 of 1 servers hold serial 7"),
             ("1 of 1 servers hold serial 8", "0 of 1 servers hold serial 7", "2 of 2 records are programmed", "all is well")),
            ("dnszone.one", "", ("1 of 2 primaries cannot be programmed", "duo-primary-9-0: no answer", "serial 7 is 2 behind the primaries' 8"),
             ("1 of 1 primaries cannot be programmed",)),
            ("bind9instance.duo-primary-0", "All 1 pods are ready", ("All 2 pods are ready", "1 of 2 pods are ready"), ("0 of 1 pods are ready",)),
            ("arecord.www", f"every primary of zone one.example answers with {KEY}; part of zone one.example",
             (f"every primary of zone two.example answers with {KEY}", "every primary of zone one.example answers with w.one.example. A",
              "2 endpoints are part of zone one.example"), ()),
        ):
            texts = [(true, 0, 30.5), *((t, 1, 20) for t in false), *((t, 0, 20) for t in false_at_rest), *((t, 1, 30.5) for t in false_at_rest)]
            for text, wrong, at in texts:
                found = judged(sweep(30.1, RIGHT), about(name, "", 30.4) if at < 30 else about(name, text, at), about(name, text, at), transfer, rest)
                self.assertEqual(wrong, min(1, len(found.violations["sentence"])), (name, text, at, dict(found.violations)))

    def test_paths(self):
        """What a zone says of the way of clients is what a client got all the time."""
        def zone(state, message=""):
            return zone_with([["10.96.0.1", "TCP", state, "duo-primary-0", "Service", "", 20, message, []]])

        answered, not_answered, refused = (clients(16, 22, text) for text in ("answer", "silent", "REFUSED"))
        self.check([*answered, zone("InSync")], rows=1)
        self.check([*not_answered, zone("Unreachable")], rows=1)
        self.check([*not_answered, zone("InSync")], rows=1, falsePath=1)
        self.check([*answered, zone("Unreachable")], rows=1, falsePath=1)
        self.check([*answered, zone("Unreachable", "it has not been asked yet")], rows=0)
        self.check([*refused, zone("Refused")], rows=1)
        self.check([*refused, zone("InSync")], rows=1, falsePath=1)
        self.check([*refused, zone("Unreachable")], rows=1, falsePath=1)
        self.check([*clients(16, 17, "answer"), *clients(17, 22, "silent"), zone("InSync")], rows=0)
        self.check([*answered, zone("Unreachable"), fault("kill-named", 15, 18)], rows=0)
        self.check([*not_answered, zone("InSync"), fault("cut-dns-in", 15, 18)], rows=1, falsePath=1)
        self.check([*answered, zone("Unreachable"), fault("cut-clients", 15, 18)], rows=1, falsePath=1)

    def test_service_that_answers_for_a_moment(self):
        """A Service that answered over TCP may have answered over UDP, too, unless one protocol alone was cut off."""
        def over(protocol, entries):
            return [e | {"protocol": protocol, "instance": "duo-primary-0"} for e in entries]
        tcp = clients(10, 18, "silent") + clients(18, 19, "answer") + clients(19, 25, "silent")
        row = zone_with([["10.96.0.1", "UDP", "InSync", "duo-primary-0", "Service", "", 20, "", []]])
        silent = over("UDP", clients(10, 25, "silent"))
        self.check([*silent, *over("TCP", clients(10, 25, "silent")), row], rows=1, falsePath=1)
        self.check([*silent, *over("TCP", tcp), row])
        self.check([*silent, *over("TCP", tcp), fault("cut-path", 10, 25), row], rows=1, falsePath=1)

    def test_paths_from_elsewhere(self):
        """A row of a vantage is about the moment at which it asked."""
        def zone(state, observed=20, address="10.96.0.1", vantage="far", of="Service"):
            return zone_with([[address, "TCP", state, "duo-primary-0", of, vantage, observed, "", []]], begin=30)

        here = clients(10, 32, "answer")
        cut = [*here, *clients(4, 16, "answer", vantage="far"), *clients(16, 29, "silent", vantage="far"), *clients(29, 42, "answer", vantage="far")]
        self.check([*cut, zone("Unreachable")], rows=1)
        self.check([*cut, zone("InSync")], rows=1, falsePath=1)
        self.check([*cut, zone("InSync", observed=10)], rows=1)
        self.check([*cut, zone("InSync", observed=25)], rows=0)
        self.check([*cut, zone("Unreachable", observed=33)], rows=1, falsePath=1)
        self.check([*cut, zone("Unreachable", observed=33), fault("cut-clients", 17, 31)], rows=0)
        self.check([*here, zone("InSync")], rows=0)
        balanced = clients(10, 32, "silent", address="198.51.100.11")
        self.check([*balanced, zone("InSync", address="198.51.100.11", vantage="", of="External")], rows=1, falsePath=1)
        self.check([*balanced, zone("Unreachable", address="198.51.100.11", vantage="", of="NameServer")], rows=1)

    def test_readiness(self):
        """Who says that a Service has no endpoints says that its pod is not ready."""
        claim = zone_with([["10.96.0.1", "TCP", "Unreachable", "duo-primary-0", "Service", "", 20, "no pod of the instance is ready, so the Service has no endpoints", []]])
        silent = clients(16, 22, "silent")

        def ready(at, yes):
            return {"op": "ready", "begin": at, "end": at + 0.1, "pods": {POD: yes}}

        self.check([*silent, claim])
        self.check([*silent, ready(2, True), claim], falsePath=1)
        self.check([*silent, ready(2, True), ready(18, False), claim])
        self.check([*silent, ready(2, False), ready(8, True), claim], falsePath=1)
        self.check([*silent, ready(2, False), ready(18, True), claim])

    def test_endpoints(self):
        """A Service without endpoints answers nobody."""
        def endpoints(at, *addresses):
            return {"op": "endpoints", "begin": at, "end": at + 0.1, "services": {"duo-primary-0": list(addresses)} if addresses else {}}

        claim = zone_with([["10.96.0.1", "TCP", "InSync", "duo-primary-0", "Service", "", 20, "", []]])
        self.check([endpoints(2, ADDRESS), claim])
        self.check([endpoints(2, ADDRESS), endpoints(8), claim], falsePath=1)
        self.check([endpoints(2, ADDRESS), endpoints(18), claim])
        self.check([endpoints(2, ADDRESS), endpoints(8), claim, fault("stale-proxy", 7, 19)])
        self.check([endpoints(2, ADDRESS), endpoints(8), endpoints(18.5, ADDRESS), claim])
        self.check([endpoints(2, ADDRESS), endpoints(8), *clients(10, 32, "answer"), claim])

    def test_answered(self):
        """The condition is what its rows amount to."""
        def zone(answered, *states, further=()):
            rows = [["10.96.0.1", p, s, "duo-primary-0", "Service", "", 20, "", []] for p, s in zip(("UDP", "TCP"), states)]
            rows += [["10.0.0.1", "UDP", "Unreachable", "duo-primary-0", "Pod", "", 20, "", []]]
            return zone_with(rows + [["198.51.100.11", "UDP", s, "duo-primary-0", "External", v, 20, "", []] for v, s in further], answered=answered)

        for answered, states, further in (
            (["True", "Answered", "2 of 2 paths answer"], ("InSync", "InSync"), ()),
            (["True", "Answered", "2 of 2 paths answer; 1 of 1 further paths of clients answer"], ("InSync", "InSync"), [("far", "InSync")]),
            (["False", "NotAnswered", "1 of 2 paths answer; clients get no answer from x"], ("InSync", "Unreachable"), ()),
            (["Unknown", "Refused", "0 of 2 paths answer; what clients get is not known"], ("Refused", "Refused"), ()),
            (["Unknown", "Unreachable", "2 of 2 paths answer; 1 of 2 further paths of clients answer"], ("InSync", "InSync"), [("far", "Unreachable"), ("", "InSync")]),
            (["False", "NotAnswered", "2 of 2 paths answer; 0 of 1 further paths of clients answer"], ("InSync", "InSync"), [("far", "Stale")]),
        ):
            self.check([zone(answered, *states, further=further)])
            for other in {"True", "False", "Unknown"} - {answered[0]}:
                self.check([zone([other, *answered[1:]], *states, further=further)], answered=1)
        self.check([zone(["True", "Answered", "1 of 2 paths answer"], "InSync", "InSync")], answered=1)
        self.check([zone(["True", "Answered", "4 of 4 paths answer"], "InSync", "InSync")], answered=1)
        self.check([zone(["True", "Answered", "2 of 2 paths answer; 2 of 2 further paths of clients answer"], "InSync", "InSync", further=[("far", "InSync")])], answered=1)

    def test_clients_cut_off(self):
        """A vantage that gets no answer for seconds says so."""
        def seen(state, observed, begin=27):
            return zone_with([["10.96.0.1", "TCP", state, "duo-primary-0", "Service", "far", observed, "", []]], begin=begin)

        cut = fault("cut-clients", 20, 28)
        self.check([cut, seen("Unreachable", 24)])
        self.check([cut, seen("InSync", 19)], unseen=1)
        self.check([cut, seen("Unreachable", 24, begin=25), seen("InSync", 19)])
        self.check([cut, seen("InSync", 19, begin=22)])
        self.check([cut, seen("InSync", 19), fault("kill-component", 18, 19, ["*"])])

    def test_fight(self):
        def fight(count, contested):
            return {"op": "fight", "begin": 20, "end": 40, "zone": "one.example", "pod": POD, "key": KEY, "value": "203.0.113.66", "count": count, "contested": contested}

        self.check([fight(11, True)])
        self.check([fight(6, False)])
        self.check([fight(20, False)], uncontested=1)
        self.check([fight(20, False), fault("kill-component", 25, 26, ["*"])])

    def test_watch(self):
        def event(kind, version, known=(), at=20, phase="InSync"):
            return {"op": "watch", "at": at, "type": kind, "name": "arecord.www", "version": str(version), "state": ["u", 2, phase],
                    "states": {name: ["u", 2, "InSync"] for name in known}}

        self.check([event("ADDED", 5), event("MODIFIED", 6), event("DELETED", 7)])
        self.check([event("ADDED", 5), event("MODIFIED", 5)], watch=1)
        self.check([event("MODIFIED", 5)], misnamed=1)
        self.check([event("LIST", 4, known=["arecord.www"]), event("ADDED", 5)], misnamed=1)
        self.check([event("LIST", 4, known=["arecord.www"]), event("DELETED", 5), event("ADDED", 6)])
        rest = [sweep(30.1, RIGHT), {"op": "stored", "begin": 30.2, "end": 30.3, "items": []}, status(30.4, "InSync", verb="list"),
                {"op": "rested", "begin": 30, "end": 31, "differ": []}, sweep(32, RIGHT)]
        self.check([event("ADDED", 5), *rest])
        self.check([event("ADDED", 5, phase="OutOfSync"), *rest], watch=1)
        self.check([event("ADDED", 5), event("DELETED", 6), *rest], watch=1)
        self.check([event("ADDED", 5), event("DELETED", 6, at=30.3), *rest])

    def test_convergence(self):
        lists = [status(t, "InSync" if t > 24 else "Stale", verb="list") for t in (20.5, 22.5, 24.5, 26.5)]
        stored = [{"op": "stored", "begin": t, "end": t + 0.1, "items": []} for t in (20.2, 22.2, 27)]
        entries = [fault("cut-dns-in", 15, 20), *[sweep(t, RIGHT if t > 21 else OLD) for t in (20.1, 21.1, 22.1, 23.1)], *lists, *stored]
        found = judged(*entries).world
        seconds, what, clock = judge.Convergence(found).of(found.faults[0])
        self.assertAlmostEqual(4.6, seconds)
        self.assertAlmostEqual(4.6, clock)
        self.assertTrue(what.startswith("syncstatus: arecord.www is OutOfSync"), what)
        found = judged(*entries, fault("kill-named", 21, 23) | {"id": 2}).world
        self.assertAlmostEqual(2.6, judge.Convergence(found).of(found.faults[0])[0])


class OverlappingAnswers(unittest.TestCase):
    def test_around(self):
        series = model.Overlapping()
        for begin, end, text in [(0, 0.1, "a"), (0.4, 0.5, "c"), (0.2, 1.2, "b"), (0.6, 1.6, "d"), (1.3, 1.4, "f"), (1.0, 2.0, "e"), (3, 3.1, "g")]:
            series.add(begin, end, text)
        self.assertEqual(series.around(0.7, 0.9), (0.4, 2.0, ["c", "b", "d", "e"]))
        self.assertEqual(series.around(1.5, 1.7), (1.3, 3.1, ["f", "d", "e", "g"]))
        self.assertEqual(series.around(2.5, 2.6), (1.3, 3.1, ["f", "g"]))
        self.assertIsNone(series.around(0.05, 0.3))
        self.assertIsNone(series.around(2.5, 3.2))


if __name__ == "__main__":
    unittest.main()
