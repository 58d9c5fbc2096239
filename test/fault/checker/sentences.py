"""Asks of each number and name in the messages of conditions whether it is so.

A rule is a pattern and what has to hold for what it found. Some hold at every moment: the serial that a server is behind is the
difference of the two that the message names, "of 3 servers" are all servers that there are, and a pod that is named is one of the zone's. At
rest the rest is known too: every server holds the serial, every record is programmed. A message at rest in which no rule knows a clause
is reported, so that a new sentence gets a rule.
"""

import re

NAME = r"[\w*.-]+"


class Sentences:
    """The messages of one world."""

    def __init__(self, world):
        self.world = world
        self.rules = [(re.compile(pattern), check) for pattern, check in (
            (r"(\d+) of (\d+) servers hold serial (\d+)", self.hold_serial),
            (r"(\d+) of (\d+) records are programmed", self.programmed),
            (r"(\d+) of (\d+) (servers|primaries|primary) in sync", self.in_sync),
            (r"(\d+) of (\d+) primaries cannot be programmed", self.not_programmed),
            (r"(\d+) of (\d+) paths answer", self.paths),
            (r"(\d+) of (\d+) zones are out of sync", self.zones),
            (r"(\d+) of (\d+) (?:RRsets|endpoints are programmed)", self.some),
            (r"(?:All )?(\d+) (?:of (\d+) )?(pods|instances) are ready", self.ready),
            (rf"Instance ({NAME}) is ready \((\d+)/(\d+) pods\)", self.instance),
            (rf"(?i:pod) ({NAME}) is ready", self.of_fleet),
            (rf"({NAME}-\d+-\d+)(?:: .*)?", self.of_fleet),
            (r"serial (\d+) is (\d+) behind the primaries' (\d+)", self.behind),
            (rf"(\d+) endpoints are part of zone ({NAME})", self.endpoints),
            (rf"every primary of zone ({NAME}) answers with (\d+) endpoints", lambda at, zone, count: self.endpoints(at, count, zone)),
            (rf"every primary of zone ({NAME}) answers with ({NAME} [A-Z]+)", self.answers),
            (rf"part of zone ({NAME})", self.part),
            (rf"TTL (\d+) is served instead of (\d+): (\w+) [\w-]+/({NAME}) declares it for the same name and type, .*", self.ttl),
            (r"the zone is valid", lambda at: None),
        )]

    def wrong(self, kind_and_name, uid, generation, text, rest=None):
        """Returns what is not so in a message about a generation of an object, None if all is. rest is the time of a state of rest."""
        at = Place(self.world, kind_and_name, uid, generation, rest)
        for clause in re.split(r"; |, (?=\d+ of )", text):
            found = next(((m, check) for pattern, check in self.rules if (m := pattern.fullmatch(clause))), None)
            if found is None and rest is not None:
                return f"no rule knows the clause: {clause}"
            problem = found and found[1](at, *found[0].groups())
            if problem:
                return problem
        return None

    @staticmethod
    def count(at, n, of, right, rest=None):
        """At rest all are, or as many as rest says."""
        n, of = int(n), int(of)
        if right is not None and of != right:
            return f"there are {right}"
        if n > of or at.rest and n != of:
            return f"{n} of {of}"
        return rest is not None and at.rest and of != rest and f"there are {rest}" or None

    def hold_serial(self, at, n, of, serial):
        if at.rest and at.serials() and at.serials() != {int(serial)}:
            return f"the servers have the serials {at.serials()}"
        return self.count(at, n, of, at.size())

    def programmed(self, at, n, of):
        return self.count(at, n, of, None, at.declared())

    def in_sync(self, at, n, of, servers):
        return self.count(at, n, of, at.size() if servers == "servers" else at.primaries())

    def not_programmed(self, at, n, of):
        if at.rest:
            return "all are"
        return None if 0 < int(n) <= int(of) == at.primaries() else f"there are {at.primaries()}"

    def paths(self, at, n, of):
        return self.count(at, n, of, 2 * at.size())

    def zones(self, at, n, of):
        right = sum(z["fleet"] == at.fleet for z in self.world.zones.values())
        return None if 0 < int(n) <= int(of) == right else f"there are {right}"

    def some(self, _, n, of):
        return None if int(n) <= int(of) else "more than there are"

    def ready(self, at, n, of, _):
        right = 1 if at.kind == "bind9instance" else at.size()
        return self.count(at, n, of or n, right)

    def instance(self, at, name, n, of):
        return self.of_fleet(at, name + "-0") or self.count(at, n, of, 1)

    @staticmethod
    def of_fleet(at, pod):
        return None if pod in at.pods() else f"{pod} is none of {sorted(at.pods())}"

    @staticmethod
    def behind(_, serial, count, newest):
        distance = (int(newest) - int(serial)) % 2**32
        return None if distance == int(count) else f"it is {distance} behind"

    def endpoints(self, at, count, zone):
        return self.part(at, zone) or (at.values is not None and int(count) != len(at.values) and f"it declares {len(at.values)}" or None)

    def answers(self, at, zone, key):
        return self.part(at, zone) or (at.values is not None and key not in at.values and f"it declares {sorted(at.values)}" or None)

    def part(self, at, zone):
        """A zone is called by its name in DNS, or by that of its object."""
        known = at.zone and (at.zone, self.world.zones[at.zone]["object"])
        return None if known and zone.rstrip(".") in known else f"it is in zone {at.zone}"

    def ttl(self, at, served, own, kind, name):
        if at.values is not None and int(own) not in {v[0] for v in at.values.values()}:
            return f"it declares {at.values}"
        other = self.world.objects.versions.get(f"{kind.lower()}.{name}", [])
        if at.rest:
            other = [v for v in self.world.objects.possible(f"{kind.lower()}.{name}", at.rest, at.rest) if v]
        declared = {v[0] for o in other for v in o.values.values()}
        return None if int(served) in declared else f"{name} declares {sorted(declared)}"


class Place:
    """What a message is about."""

    def __init__(self, world, kind_and_name, uid, generation, rest):
        self.world, self.rest = world, rest
        self.kind, _, name = kind_and_name.partition(".")
        if self.kind == "dnszone":
            self.zone = next((z for z in world.zones if world.zones[z]["object"] == name), None)
        else:
            self.zone = world.zone_of.get(kind_and_name)
        self.fleet = world.zones[self.zone]["fleet"] if self.zone else name.partition("-")[0]
        version, _ = world.objects.evaluated(kind_and_name, uid, generation)
        self.values = version.values if version else None

    def size(self):
        return self.world.fleets.get(self.fleet)

    def pods(self):
        return {p for p in self.world.pods.values() if p.startswith(self.fleet + "-")}

    def primaries(self):
        return sum(p.startswith(self.fleet + "-primary-") for p in self.pods())

    def serials(self):
        """Returns what the servers of the zone say at rest."""
        return {t["serial"] for t in self.world.transfers if t["zone"] == self.zone and abs(t["begin"] - self.rest) < 10}

    def declared(self):
        """Returns how many names and types objects declare in the zone at rest, each object by itself."""
        if not self.rest:
            return None
        objects = (o for o, zone in self.world.zone_of.items() if zone == self.zone)
        return sum(len(v.values) for o in objects for v in self.world.objects.possible(o, self.rest, self.rest) if v)
