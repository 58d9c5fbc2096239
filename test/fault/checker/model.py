"""What servers have to answer, from the declared objects alone: docs/reference/zones.md, as far as the driver goes.

The driver's objects never exclude each other, so the value at a name and type is the union of what objects declare there, with the
lowest TTL. A value is the text that questions.describe returns.
"""

import bisect
import itertools

NONE = "none"


def _absolute(name, zone):
    if name == "@":
        return zone + "."
    return name if name.endswith(".") else f"{name}.{zone}."


def declared(kind, spec, zone, ttl):
    """Returns {"name type": (ttl, rdata...)} of a spec; the zone is the one of a record's label."""
    found = {}
    if kind == "DNSEndpoint":
        for e in spec["endpoints"]:
            values = [_endpoint_rdata(e["recordType"], t) for t in e["targets"]]
            found[f'{e["dnsName"]}. {e["recordType"]}'] = (e.get("recordTTL") or ttl, frozenset(values))
        return found
    rdtype = kind.removesuffix("Record")
    values = {
        "A": lambda: spec["ipv4Addresses"], "AAAA": lambda: spec["ipv6Addresses"],
        "CNAME": lambda: [_absolute(spec["target"], zone)], "NS": lambda: [_absolute(spec["nameserver"], zone)],
        "TXT": lambda: ['"' + "".join(spec["text"]) + '"'],
        "MX": lambda: [f'{spec["priority"]} {_absolute(spec["mailServer"], zone)}'],
        "SRV": lambda: [f'{spec["priority"]} {spec["weight"]} {spec["port"]} {_absolute(spec["target"], zone)}'],
        "CAA": lambda: [f'{spec["flags"]} {spec["tag"]} "{spec["value"]}"'],
    }[rdtype]()
    found[f'{_absolute(spec["name"], zone)} {rdtype}'] = (spec.get("ttl") or ttl, frozenset(values))
    return found


def _endpoint_rdata(rdtype, target):
    if rdtype == "TXT":
        return f'"{target}"'
    return target + "." if rdtype in ("CNAME", "NS", "PTR", "MX", "SRV") else target


def merge(parts):
    """Returns the text of an RRset that several objects declare together."""
    parts = [p for p in parts if p]
    if not parts:
        return NONE
    return f"{min(p[0] for p in parts)} " + " | ".join(sorted(frozenset.union(*(p[1] for p in parts))))


class Version:
    """What an object declares from one write to the next. The write took effect between begin and end."""

    def __init__(self, begin, end, uid, generation, values):
        self.begin, self.end, self.uid, self.generation, self.values = begin, end, uid, generation, values


class Objects:
    """All versions of all objects."""

    def __init__(self):
        self.versions = {}  # "kind.name" -> [Version]
        self.by_key = {}  # "name type" -> {"kind.name"}
        self.keys = {}  # "kind.name" -> {"name type"}, of all its versions
        self.own_keys = {}  # ("kind.name", uid) -> {"name type"}, of one object's: its namesakes before it are not its business

    def write(self, entry, zone, ttl):
        """Takes a write of the history, which is in the order of each object's writes."""
        name = f'{entry["kind"].lower()}.{entry["name"]}'
        values = {} if entry["verb"] == "delete" else declared(entry["kind"], entry["spec"], zone, ttl)
        versions = self.versions.setdefault(name, [])
        if values and versions and (versions[-1].uid, versions[-1].generation) == (entry["uid"], entry["generation"]):
            return  # nothing changed
        versions.append(Version(entry["begin"], entry["end"], entry.get("uid"), entry.get("generation"), values))
        self.keys.setdefault(name, set()).update(values)
        self.own_keys.setdefault((name, entry.get("uid")), set()).update(values)
        for key in values:
            self.by_key.setdefault(key, set()).add(name)

    def possible(self, name, begin, end):
        """Returns the versions that may have been current at a moment between begin and end; None is "not there yet"."""
        versions = self.versions.get(name, [])
        last = bisect.bisect_right(versions, end, key=lambda v: v.begin)
        first = last
        while first > 0 and (first == last or versions[first].end >= begin):
            first -= 1
        return ([None] if first == 0 and (not versions or versions[0].end >= begin) else []) + versions[first:last]

    def evaluated(self, name, uid, generation):
        """Returns the version that an answer is about, and the one after it; (None, None) if it is unknown."""
        versions = self.versions.get(name, [])
        for version, after in itertools.zip_longest(versions, versions[1:]):
            if version.uid == uid:
                if version.generation == generation:
                    return version, after
                if after is not None and not after.values and generation == version.generation + 1:
                    following = versions[versions.index(after) + 1:]
                    return after, following[0] if following else None
        return None, None

    def expected(self, key, begin, end, own=None, version=None, lag=0):
        """Returns the texts that are right for a key at a moment between begin and end, if object own is at version, and what is
        known of others may be older by a lag."""
        choices = []
        for name in self.by_key.get(key, ()):
            candidates = [version] if name == own else self.possible(name, begin - lag, end)
            choices.append({v.values.get(key) if v else None for v in candidates})
        return {merge(combination) for combination in itertools.product(*choices)}

    def changed(self, key, begin, end):
        """Reports whether a write that concerns a key may have taken effect between begin and end."""
        for name in self.by_key.get(key, ()):
            versions = self.versions[name]
            last = bisect.bisect_right(versions, end, key=lambda v: v.begin)
            if last and versions[last - 1].end >= begin:
                return True
        return False


class Series:
    """The answers of one server to one question, by time."""

    def __init__(self):
        self.begins, self.ends, self.texts = [], [], []

    def add(self, begin, end, text):
        self.begins.append(begin)
        self.ends.append(end)
        self.texts.append(text)

    def around(self, begin, end):
        """Returns (first begin, last end, texts) of the answers that cover a span: the last one that ended before it, all that
        overlap it, and the first one that began after it. It returns None if there is none before or none after."""
        first = bisect.bisect_right(self.ends, begin) - 1
        last = bisect.bisect_left(self.begins, end)
        if first < 0 or last >= len(self.begins):
            return None
        return self.begins[first], self.ends[last], self.texts[first:last + 1]


class Overlapping(Series):
    """Answers to questions of which none waits for the answer to another. They are noted in the order of the answers."""

    def __init__(self):
        super().__init__()
        self.longest = 0.0

    def add(self, begin, end, text):
        at = bisect.bisect_right(self.begins, begin)
        self.begins.insert(at, begin)
        self.ends.insert(at, end)
        self.texts.insert(at, text)
        self.longest = max(self.longest, end - begin)

    def around(self, begin, end):
        """Returns the same as Series. The first answer is that to the last question of which the answer had come."""
        last = bisect.bisect_left(self.begins, end)
        before = next((i for i in range(bisect.bisect_right(self.begins, begin) - 1, -1, -1) if self.ends[i] <= begin), None)
        if before is None or last >= len(self.begins):
            return None
        near = [i for i in range(bisect.bisect_left(self.begins, begin - self.longest), last + 1) if self.ends[i] > begin]
        return self.begins[before], self.ends[last], [self.texts[before], *(self.texts[i] for i in near)]
