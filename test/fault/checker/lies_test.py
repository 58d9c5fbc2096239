"""Tests the judge with a history of a real run, as it is and after each of many lies: python3 lies_test.py HISTORY.

Every lie changes what an API server, a DNS server or an object said at some moment, and nothing else. The judge has to report each one by
its name.
"""

import collections
import copy
import json
import random
import sys
import unittest

import history
import judge
import model

HISTORY = "testdata/history.jsonl.xz"
FAR = 4.0  # from a lie to the next write of its object, fault or change by hand
TIMES = 3  # how often each lie is tried, at another place each time


def quiet(entries, begin, end):
    """Reports whether no fault, write or change by hand is near."""
    return not any(e["op"] in ("fault", "hand", "write", "foreign") and e["begin"] <= end + FAR and e["end"] >= begin - FAR for e in entries)


def rows_of(entries, phase, verb=None):
    """Yields (entry, item, row) of records of which all that is said has been so for a while."""
    for entry in entries:
        if entry["op"] == "status" and verb in (None, entry["verb"]) and quiet(entries, entry["begin"], entry["end"]):
            for item in entry["items"]:
                if item["name"].endswith("record") or "record." in item["name"]:
                    if item["phase"] == phase and item["rows"]:
                        yield entry, item, item["rows"][0]


def lie(name):
    """Marks a lie that the judge has to report by a name."""
    def mark(method):
        method.name = name
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
            raise unittest.SkipTest("the history has no place for this lie")
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
            raise unittest.SkipTest("the server was not asked then")

    @lie("falseInSync")
    def in_sync_while_the_server_answers_otherwise(self):
        entry, item, row = self.pick(rows_of(self.entries, "InSync"))
        text = self.rng.choice(["none", "REFUSED", "60 203.0.113.1", "referral", "alias"])
        self.answer_otherwise(row[0], self.key_of(item), entry["begin"] - 3, entry["end"] + 3, text)

    @lie("falseOutOfSync")
    def out_of_sync_while_the_server_answers_right(self):
        _, item, row = self.pick(rows_of(self.entries, "InSync"))
        row[1], item["phase"] = self.rng.choice(["Stale", "Divergent", "Unreachable", "Shadowed"]), "OutOfSync"

    @lie("falseOutOfSync")
    def not_in_sync_with_all_rows_in_sync(self):
        _, item, _ = self.pick(rows_of(self.entries, "InSync"))
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
        """Returns the events between the first list of a watch and the next one."""
        return [e for e in self.of("watch") if e["type"] in kinds]

    @lie("misnamed")
    def watch_lacks_first_event(self):
        """The first event of an object that was not listed before."""
        lost = None
        after = collections.defaultdict(list)
        for event in self.of("watch"):
            if event["type"] == "LIST":
                after.clear()
            elif event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                after[event["name"]].append(event)
                former = after[event["name"]]
                if len(former) > 1 and former[-2]["type"] == "ADDED" and self.rng.random() < 0.5:
                    lost = former[-2]
        self.entries.remove(self.pick([lost] if lost else []))

    def last_before_rest(self, kind):
        """Removes the last event of an object before a time of rest, where no list follows."""
        rest, last = self.of("rested")[0], {}
        for event in self.of("watch"):
            if event["at"] >= rest["begin"]:
                break
            if event["type"] == "LIST":
                last.clear()
            elif "name" in event:
                last[event["name"]] = event
        self.entries.remove(self.pick([e for e in last.values() if e["type"] == kind and not self.is_repetition(e)]))

    def is_repetition(self, event):
        """Reports whether an event says what the one of its object before it, or the list, has said."""
        before = None
        for e in self.of("watch"):
            if e is event:
                return before == e["state"]
            if e["type"] == "LIST":
                before = e["states"].get(event["name"])
            elif e.get("name") == event["name"]:
                before = None if e["type"] == "DELETED" else e["state"]
        return False

    @lie("watch")
    def watch_lacks_last_event(self):
        self.last_before_rest("MODIFIED")

    @lie("watch")
    def watch_lacks_deletion(self):
        self.last_before_rest("DELETED")

    @lie("watch")
    def watch_repeats_event(self):
        event = self.pick(self.events("ADDED", "MODIFIED", "DELETED"))
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

    @lie("lost")
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
    def two_serials_at_rest(self):
        transfer, _ = self.transfer_at_rest(foreign=False)
        transfer["serial"] += self.rng.choice([1, -1, 1 << 30])

    def stored_at_rest(self, change):
        rest = self.pick(self.of("rested"))
        looks = [s for s in self.of("stored") if rest["begin"] <= s["begin"] and s["end"] <= rest["end"]]
        change(self.pick([i for i in looks[-1]["items"] if "Programmed" in i["conditions"]]))

    @lie("stored")
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
            for seed in range(TIMES if hasattr(method, "name") else 0):
                with self.subTest(lie=name, seed=seed):
                    lies = Lies(json.loads(self.text), random.Random(seed))
                    method(lies)
                    found = kinds_of(lies.entries)
                    self.assertEqual({method.name}, set(found), dict(found))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        HISTORY = sys.argv.pop()
    unittest.main()
