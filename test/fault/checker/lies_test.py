"""Tests the judge with a history of a real run, as it is and after each of many lies: python3 lies_test.py HISTORY.

Every lie changes what an API server, a DNS server or an object said at some moment, and nothing else. The judge has to report each one by
its name.
"""

import collections
import copy
import json
import random
import re
import sys
import unittest

import history
import judge
import model

FAR = 4.0  # from a lie to the next write of its object, fault or change by hand


def rows_of(entries):
    """Yields (entry, item, row) of records in sync to which nothing has happened for a while, nor to the server."""
    busy = collections.defaultdict(list)
    for e in entries:
        for name in {"write": lambda: [f'{e["kind"].lower()}.{e["name"]}'], "fault": lambda: e["scope"],
                     "hand": lambda: [e["zone"]]}.get(e["op"], list)():
            busy[name].append((e["begin"] - FAR, e["end"] + FAR))
    for entry in entries:
        for item in entry["items"] if entry["op"] == "status" else ():
            if item["phase"] != "InSync" or not item["rows"] or "record." not in item["name"] or "shared" in item["name"]:
                continue
            row = item["rows"][0]
            if not any(begin <= entry["end"] and end >= entry["begin"] for name in (item["name"], row[3], row[2]) for begin, end in busy[name]):
                yield entry, item, row


def lie(*names):
    """Marks a lie that the judge has to report by a name, and may report by others."""
    def mark(method):
        method.names = names
        return method
    return mark


class Lies:
    """A history to be lied in. Each lie draws a place for itself."""

    def __init__(self, entries, rng):
        self.entries, self.rng = entries, rng

    def of(self, op, **fields):
        return [e for e in self.entries if e["op"] == op and all(e.get(k) == v for k, v in fields.items())]

    def pick(self, choices):
        choices = list(choices)
        if not choices:
            raise AssertionError("the history has no place for this lie")
        return self.rng.choice(choices)

    def key_of(self, item):
        """Returns the one name and type that a record declares."""
        objects = judge.World(self.entries).objects
        version, _ = objects.evaluated(item["name"], item["uid"], item["generation"])
        return next(iter(version.values))

    def answer_otherwise(self, address, key, begin, end, text):
        """Has a server answer a question otherwise from begin to end."""
        said, lied = model.NONE, False
        for entry in sorted(self.of("sweep", address=address), key=lambda e: e["begin"]):
            answers = entry["answers"]
            said = answers.get(key, said)
            if begin <= entry["begin"] <= end:
                answers[key] = text
                lied = True
            elif lied:
                answers[key] = said
                break
        if not lied:
            raise AssertionError("the server was not asked then")

    @lie("sentence")
    def number_in_a_stored_message(self):
        item = self.pick(i for e in self.of("stored") for i in e["items"] if "servers hold serial" in i["conditions"].get("Ready", [""] * 4)[3])
        condition = item["conditions"]["Ready"]
        condition[3] = re.sub(r"of \d+ servers", "of 9 servers", condition[3])

    @lie("sentence")
    def serial_at_rest(self):
        rest = self.pick(self.of("rested"))
        looks = [e for e in self.of("stored") if rest["begin"] <= e["begin"] and e["end"] <= rest["end"]]
        item = next(i for i in looks[-1]["items"] if i["name"].startswith("dnszone."))
        condition = item["conditions"]["Ready"]
        condition[3] = re.sub(r"serial \d+", "serial 1", condition[3])

    @lie("falseInSync", "lost")
    def in_sync_while_the_server_answers_otherwise(self):
        entry, item, row = self.pick(rows_of(self.entries))
        text = self.rng.choice(["none", "REFUSED", "60 203.0.113.1", "referral", "alias"])
        self.answer_otherwise(row[0], self.key_of(item), entry["begin"] - 3, entry["end"] + 3, text)

    @lie("falseOutOfSync")
    def out_of_sync_while_the_server_answers_right(self):
        _, item, row = self.pick(rows_of(self.entries))
        row[1], item["phase"] = self.rng.choice(["Stale", "Divergent", "Shadowed", "Lame"]), "OutOfSync"

    @lie("falseOutOfSync")
    def not_in_sync_with_all_rows_in_sync(self):
        _, item, _ = self.pick(rows_of(self.entries))
        item["phase"] = self.rng.choice(["Propagating", "OutOfSync", "Failed"])

    def older_generation(self, phase):
        world = judge.World(self.entries)
        found = []
        for entry in self.of("status", verb="get"):
            for item in entry["items"]:
                versions = world.objects.versions.get(item["name"], [])
                version, _ = world.objects.evaluated(item["name"], item["uid"], item["generation"])
                before = versions[versions.index(version) - 1] if version in versions[1:] else None
                if before and before.uid == version.uid and before.values and version.values and version.end < entry["begin"]:
                    found.append((item, before.generation))
        item, generation = self.pick(found)
        item["generation"], item["phase"] = generation, phase
        item["rows"] = []

    @lie("falseInSync")
    def older_generation_in_sync(self):
        self.older_generation("InSync")

    @lie("stale")
    def older_generation_on_its_way(self):
        self.older_generation("Propagating")

    def events(self, *kinds):
        return [e for e in self.of("watch") if e["type"] in kinds]

    def followed(self, kind, by):
        """Returns the events of a type that another event of the same object follows, with no list in between."""
        found, last = [], {}
        for event in self.of("watch"):
            if event["type"] == "LIST":
                last.clear()
            elif "name" in event:
                before = last.get(event["name"])
                if before and before["type"] == kind and event["type"] == by:
                    found.append(before)
                last[event["name"]] = event
        return found

    @lie("misnamed")
    def watch_lacks_appearance(self):
        self.entries.remove(self.pick(self.followed("ADDED", "MODIFIED")))

    @lie("misnamed")
    def watch_lacks_deletion(self):
        self.entries.remove(self.pick(self.followed("DELETED", "ADDED")))

    @lie("watch")
    def watch_lacks_last_event(self):
        rest, last, states = self.of("rested")[0], {}, {}
        for event in self.of("watch"):
            if event["at"] >= rest["begin"]:
                break
            if event["type"] == "LIST":
                last, states = {}, dict(event["states"])
            elif "name" in event:
                if event["type"] == "MODIFIED" and states.get(event["name"]) != event["state"]:
                    last[event["name"]] = event
                else:
                    last.pop(event["name"], None)
                states[event["name"]] = event["state"]
        self.entries.remove(self.pick(last.values()))

    @lie("watch")
    def watch_repeats_event(self):
        event = self.pick(self.events("MODIFIED"))
        self.entries.insert(self.entries.index(event) + 1, copy.deepcopy(event))

    @lie("watch", "misnamed")
    def watch_repeats_appearance(self):
        event = self.pick(self.events("ADDED", "DELETED"))
        self.entries.insert(self.entries.index(event) + 1, copy.deepcopy(event))

    @lie("watch")
    def watch_swaps_events(self):
        events = self.of("watch")
        first, second = self.pick([(a, b) for a, b in zip(events, events[1:])
                                   if a["type"] == b["type"] == "MODIFIED" and a["version"] != b["version"]])
        i, j = self.entries.index(first), self.entries.index(second)
        self.entries[i], self.entries[j] = second, first

    @lie("misnamed")
    def watch_names_event_wrongly(self):
        event = self.pick(self.events("ADDED", "MODIFIED"))
        event["type"] = "MODIFIED" if event["type"] == "ADDED" else "ADDED"

    def transfer_at_rest(self, foreign):
        """Draws a transfer at rest and a name and type in it."""
        world = judge.World(self.entries)
        found = []
        for rest in self.of("rested"):
            found += [(t, k) for t in self.of("transfer") if rest["begin"] - 5 <= t["begin"] <= rest["end"] + 5
                      for k in t["rrsets"] if k in world.zones[t["zone"]]["keys"] and world.is_foreign(k) == foreign]
        return self.pick(found)

    @lie("lost")
    def record_lost(self):
        transfer, key = self.transfer_at_rest(foreign=False)
        del transfer["rrsets"][key]

    @lie("lost", "falseInSync")
    def record_not_answered_at_rest(self):
        rest, (transfer, key) = self.of("rested")[-1], self.transfer_at_rest(foreign=False)
        address = next(a for pods in self.of("pods") for a, pod in pods["addresses"].items() if pod == transfer["pod"])
        self.answer_otherwise(address, key, rest["begin"], rest["end"] + 60, "none")

    @lie("lost")
    def deleted_record_is_back(self):
        transfer, key = self.transfer_at_rest(foreign=False)
        absent = [k for k in judge.World(self.entries).zones[transfer["zone"]]["keys"] if k not in transfer["rrsets"]]
        transfer["rrsets"][self.pick(absent)] = transfer["rrsets"][key]

    @lie("lost")
    def foreign_data_gone(self):
        transfer, key = self.transfer_at_rest(foreign=True)
        del transfer["rrsets"][key]

    @lie("lost")
    def data_that_nobody_put_there(self):
        transfer, _ = self.transfer_at_rest(foreign=False)
        transfer["rrsets"][judge.World(self.entries).zones[transfer["zone"]]["foreign"][0]] = '60 "foreign"'

    @lie("lost", "sentence")
    def two_serials_at_rest(self):
        transfer, _ = self.transfer_at_rest(foreign=False)
        transfer["serial"] += self.rng.choice([1, -1, 1 << 30])

    def stored_at_rest(self, change):
        rest = self.pick(self.of("rested"))
        looks = [s for s in self.of("stored") if rest["begin"] <= s["begin"] and s["end"] <= rest["end"]]
        change(self.pick([i for i in looks[-1]["items"] if "Programmed" in i["conditions"]]))

    @lie("stored", "sentence")
    def stored_not_programmed(self):
        self.stored_at_rest(lambda item: item["conditions"].update(Programmed=["False", "ReconcileFailed", item["generation"], "so"]))

    @lie("stored")
    def stored_about_older_generation(self):
        self.stored_at_rest(lambda item: item["conditions"]["Ready" if "Ready" in item["conditions"] else "Programmed"].__setitem__(2, item["generation"] - 1))

    @lie("falseInSync")
    def zone_without_a_server(self):
        found = [i for e in self.of("status") for i in e["items"]
                 if i["name"].startswith("dnszone.") and i["phase"] == "InSync" and len(i["rows"]) > 1]
        self.pick(found)["rows"].pop()


def kinds_of(entries):
    found = judge.Judge(judge.World(entries))
    found.run()
    return found.violations


class LiesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = json.dumps(list(history.read(HISTORY)))

    def test_truth(self):
        entries = json.loads(self.text)
        self.assertEqual({}, dict(kinds_of(entries)))

    def test_lies(self):
        for name, method in vars(Lies).items():
            if not hasattr(method, "names"):
                continue
            with self.subTest(lie=name):
                lies = Lies(json.loads(self.text), random.Random(name))
                method(lies)
                found = kinds_of(lies.entries)
                self.assertIn(method.names[0], found)
                self.assertLessEqual(set(found), set(method.names), dict(found))


if __name__ == "__main__":
    HISTORY = sys.argv.pop()
    unittest.main()
