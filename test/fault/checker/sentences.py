"""Asks of each number and name in the messages of conditions whether it is so.

A rule is a pattern and what has to hold for what it found. Some hold at every moment: the serial that a server is behind is the
difference of the two that the message names, "of 3 servers" are all servers that there are, and a pod that is named is one of the zone's. At
rest the rest is known too: every server holds the serial, every record is programmed. A message at rest in which no rule knows a clause
is reported, so that a new sentence gets a rule. Beside the rules, every number "n of m", pod and object in any message is looked at.

python3 sentences.py FACTS judges messages at rest with facts from elsewhere, a JSON object (class Facts), and prints what is not so.
"""

import json
import re
import sys

NAME = r"[\w*.-]+"
KEY = rf"{NAME} [A-Z0-9]+"
# A clause at rest that has one of these claims something, and needs a rule.
CLAIM = re.compile(r"\b\d+ of \d+\b|\bserial \d|\bevery primary\b|\b(?:All|No) (?:\d+ )?(?:pods|instances)\b")
CONTESTED = re.compile(rf"somebody else has overwritten ({KEY}) on ({NAME}) (\d+) times since [\d: -]+ UTC, the last time with (.*?) \(who is not known here: .*?\)"
                       r"(?:; at present it is as declared|; it is corrected again after [\d: -]+ UTC)(?:; | and \d+ more)?")


class Sentences:
    """The messages of one world."""

    def __init__(self, world=None):
        self.world = world
        self.rules = [(re.compile(pattern), check) for pattern, check in (
            # how many
            (r"(\d+) of (\d+) servers hold serial (\d+)", self.hold_serial),
            (r"(\d+) of (\d+) records are programmed", self.programmed),
            (r"(\d+) of (\d+) (servers?|primaries|primary|secondaries|secondary) in sync", self.in_sync),
            (r"(\d+) of (\d+) primaries cannot be programmed", self.not_programmed),
            (r"(\d+) of (\d+) paths answer", self.paths),
            (r"(\d+) of (\d+) further paths of clients answer", self.some),
            (r"(\d+) of (\d+) servers (Secure|Expiring|Insecure|Bogus|Unknown)(?: \(.*\))?", self.secure),
            (r"(\d+) of (\d+) zones are out of sync", self.zones),
            (r"serves (\d+) of (\d+) zones", self.serves),
            (r"(\d+) of (\d+) (?:RRsets|endpoints)(?: are (?:not )?(?:programmed|accepted|known)| have not been asked lately|)(?:; .*)?", self.some),
            (r"the change has not been programmed yet \((\d+) of (\d+) RRsets\)", self.some),
            (r"(?:All )?(\d+) (?:of (\d+) )?(pods|instances) are ready", self.ready),
            (r"No (pods|instances) are ready(?:: .*)?", self.none_ready),
            (r"(\d+) records? (?:is|are) also selected \((.*)\) by .*", self.also_selected),
            (r"paused: (\d+) RRsets? would change", self.nothing_at_rest),
            (r"RRsets that would be removed: (\d+), that would lose values: (\d+) \(.*\)", self.held),
            # which servers
            (rf"Instance ({NAME}) is ready \((\d+)/(\d+) pods\)", self.instance),
            (rf"Instance ({NAME}) does not exist yet", lambda at, name: self.of_fleet(at, name + "-0") or at.rest and "it is to be there at rest"),
            (rf"(?i:pod) ({NAME}) is ready", self.of_fleet),
            (rf"({NAME}-\d+-\d+): query of ({NAME}) at ([\d.]+):\d+: .*", self.query),
            (rf"({NAME}-\d+-\d+): ZoneTransferFailed: the secondary stays at serial (\d+) instead of serial (\d+) since .*", self.stays),
            (rf"({NAME}-\d+-\d+) (?:took the update without an error and )?does not serve ({KEY}) as declared(?:.*)", self.not_served),
            (rf"({NAME}-\d+-\d+) does not serve the zone yet", lambda at, pod: self.of_fleet(at, pod) or at.rest and "every server does at rest"),
            (rf"({NAME}-\d+-\d+) holds ([A-Z0-9, ]+) data at ({NAME}) that no object declares and that cannot stand beside ([A-Z0-9]+)", self.in_the_way),
            (rf"(?:({KEY}) is not what resolvers get: )?({NAME}-\d+-\d+) holds ([A-Z0-9]+) data at ({NAME}) that no object declares and that hides it", self.hidden),
            (rf"(?:({KEY}) is not what resolvers get: )?({NAME}-\d+-\d+) answers from zone ({NAME}), which it serves as well", self.hidden_by_zone),
            (rf"({NAME}-\d+-\d+)(?:: .*)?", self.of_fleet),
            # serials
            (r"serial (\d+) is (\d+) behind (?:the primaries' )?(\d+)(?:, the newest of any server, as no primary reports one)?(?: \(.*\))?", self.behind),
            (r"serial (\d+) is ahead of the primaries' (\d+): no transfer will repair it(?: until theirs is higher)?(?: \(.*\))?", self.ahead),
            (r"set spec\.soaRecord\.serial of the DNSZone to (\d+)", lambda at, serial: at.rest and at.strict and "no serial is ahead at rest" or None),
            (r"(?:.* \()?answers with serial (\d+) of the servers and another SOA record\)?", self.newest),
            (r"serial (\d+) is the newest, but the data is (?:missing|not what is declared)(?: \(.*\))?", self.newest),
            (r"(?:.* \()?answers with serial (\d+), which is (\d+) behind the servers' (\d+)\)?", self.behind),
            (r"(?:.* \()?answers with serial (\d+), which is newer than the servers' (\d+) was a moment before\)?", self.ahead),
            (r"(?:.* \()?answers with serial (\d+), which no server has: the newest is (\d+)\)?", self.differ),
            # zones and what objects declare there
            (rf"(\d+) endpoints? (?:is|are) part of zones? ({NAME}(?:, {NAME})*)", self.endpoints),
            (rf"every primary of zones? ({NAME}(?:, {NAME})*) answers with (\d+) endpoints?", lambda at, zone, count: self.endpoints(at, count, zone)),
            (rf"every primary of zone ({NAME}) answers with ({KEY})", self.answers),
            (rf"part of zone ({NAME})", self.part),
            (rf"zone ({NAME}) has not been evaluated yet", lambda at, zone: self.part(at, zone) or at.rest and "all are at rest"),
            (rf"zone ({NAME}): .*", self.part),
            (rf"TTL (\d+) is served instead of (\d+): (\w+) [\w-]+/({NAME}) declares it for the same name and type, .*", self.ttl),
            (r"answers for the zone, but not for (" + KEY + r")(?:: .*)?", lambda at, key: self.declares(at, key)),
            (rf"({NAME}) delegates to ({NAME}(?:, {NAME})*), as the zone has it", lambda at, zone, servers: None),
            # paths
            (rf"(?:clients get no answer from |it is being asked what clients get from |what clients get is not known: )?"
             rf"instance ({NAME}) at ([\d.]+):(\d+) over (UDP|TCP) \((.*?)\)(?: and \d+ more)?", self.path),
            (rf"(?:clients get something else from |what clients get is not known of )?(?:({NAME}(?:, {NAME})*) at )?([\d.]+):(\d+) over (UDP|TCP)"
             rf"(?: as seen from ({NAME}))? \(.*\)(?: and \d+ more)?", self.further),
            # what has neither numbers nor names, or follows from another clause
            (r"the zone is valid|the zone is not signed|remove (?:it|that) or rename the record|declare the data there|(?:and )?\d+ more|the change has not been programmed yet"
             r"|does allowQuery admit them, but not the API server\?|its answer to the request to transfer the zone was .*|its log says why it cannot .*|", lambda at: None),
        )]

    def wrong(self, kind_and_name, uid, generation, text, rest=None):
        """Returns what is not so in a message about a generation of an object, None if all is. rest is the time of a state of rest."""
        return self.wrong_at(Place(self.world, kind_and_name, uid, generation, rest), text)

    def wrong_at(self, at, text):
        """Returns what is not so in a message about a place."""
        for contest in CONTESTED.finditer(text):
            if problem := self.contested(at, *contest.groups()):
                return problem
        text = CONTESTED.sub("", text)
        for clause in re.split(r"; |, (?=\d+ of )", text):
            found = next(((m, check) for pattern, check in self.rules if (m := pattern.fullmatch(clause))), None)
            if found is None and at.rest and (at.strict or CLAIM.search(clause)):
                return f"no rule knows the clause: {clause}"
            problem = found and found[1](at, *found[0].groups())
            if problem:
                return problem
        return self.anywhere(at, text)

    @staticmethod
    def anywhere(at, text):
        """Looks at what is said anywhere in a message: shares, pods and objects."""
        for n, of in re.findall(r"\b(\d+) of (\d+)\b", text):
            if int(n) > int(of):
                return f"{n} of {of}"
        for more in re.findall(r"\band (\d+) more\b", text):
            if int(more) < 1:
                return f"{more} more"
        for pod in re.findall(r"\b[a-z0-9-]+-(?:primary|secondary)-\d+-\d+\b", text):
            if at.pods() and pod not in at.all_pods():
                return f"there is no pod {pod}"
        for kind, name in re.findall(rf"\b(\w+Record|DNSEndpoint) [a-z0-9-]+/([a-z0-9][a-z0-9.-]*[a-z0-9])\b", text):
            if not at.is_known(f"{kind.lower()}.{name}"):
                return f"there is no {kind} {name}"
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
        if at.programmed() is not None and at.rest:
            return None if (int(n), int(of)) == (at.programmed(), at.declared()) else f"{at.programmed()} of {at.declared()} are"
        return self.count(at, n, of, None, at.declared())

    def in_sync(self, at, n, of, servers):
        right = {"server": at.size(), "primar": at.primaries(), "second": at.size() and at.size() - at.primaries()}[servers[:6]]
        return self.count(at, n, of, right)

    def not_programmed(self, at, n, of):
        if at.rest:
            return "all are"
        return None if 0 < int(n) <= int(of) == at.primaries() else f"there are {at.primaries()}"

    def paths(self, at, n, of):
        right = at.size() and 2 * at.size()
        if not at.rest and right and int(of) < right:
            right = int(of)  # a Service may be gone
        return self.count(at, n, of, right)

    def secure(self, at, n, of, security):
        """No zone of such a world is signed."""
        return security not in ("Insecure", "Unknown") and "the zone is not signed" or at.rest and security == "Unknown" and "all is known at rest" or self.count(at, n, of, at.size())

    @staticmethod
    def zones(at, n, of):
        return None if 0 < int(n) <= int(of) == at.zones() else f"there are {at.zones()}"

    @staticmethod
    def serves(at, n, of):
        return None if int(n) <= int(of) <= at.zones() else f"there are {at.zones()}"

    @staticmethod
    def some(_, n, of):
        return None if int(n) <= int(of) else "more than there are"

    def ready(self, at, n, of, _):
        return self.count(at, n, of or n, at.expected())

    @staticmethod
    def none_ready(at, _):
        return "all are at rest" if at.rest else None

    @staticmethod
    def nothing_at_rest(at, n):
        return f"{n} at rest" if at.rest and at.strict else None

    @staticmethod
    def also_selected(_, n, some):
        named = [s for s in some.split(", ") if s != "…"]
        return None if len(named) <= int(n) and ("…" in some) == (len(named) < int(n)) else f"{len(named)} are named"

    @staticmethod
    def held(_, removed, changed):
        return None if int(removed) + int(changed) > 0 else "nothing is held back"

    def instance(self, at, name, n, of):
        return self.of_fleet(at, name + "-0") or self.count(at, n, of, 1)

    @staticmethod
    def of_fleet(at, pod):
        return None if pod in at.pods() else f"{pod} is none of {sorted(at.pods())}"

    def query(self, at, pod, name, address):
        if (problem := self.of_fleet(at, pod)) or address in at.addresses(pod) or not at.addresses(pod):
            return problem
        return f"{pod} never had the address {address}"

    def stays(self, at, pod, serial, newest):
        return self.of_fleet(at, pod) or self.differ(at, serial, newest)

    def not_served(self, at, pod, key):
        return self.of_fleet(at, pod) or self.declares(at, key) or at.rest and at.strict and "all are programmed" or None

    def in_the_way(self, at, pod, others, name, own):
        problem = self.of_fleet(at, pod) or self.declares(at, f"{name} {own}")
        declared = next((t for t in others.split(", ") if at.is_declared(f"{name} {t}")), None)
        return problem or declared and f"an object declares {name} {declared}" or None

    def hidden(self, at, key, pod, rdtype, name):
        problem = self.of_fleet(at, pod) or key and self.declares(at, key)
        return problem or key and not key.split(" ")[0].endswith("." + name) and key.split(" ")[0] != name and f"{name} is not above {key}" or None

    def hidden_by_zone(self, at, key, pod, zone):
        problem = self.of_fleet(at, pod) or key and self.declares(at, key)
        return problem or zone.rstrip(".") not in at.zone_names() and f"there is no zone {zone}" or None

    @staticmethod
    def behind(_, serial, count, newest):
        distance = (int(newest) - int(serial)) % 2**32
        return None if distance == int(count) else f"it is {distance} behind"

    @staticmethod
    def ahead(_, serial, newest):
        distance = (int(serial) - int(newest)) % 2**32
        return None if 0 < distance <= 2**31 else "it is not ahead (RFC 1982)"

    @staticmethod
    def differ(_, serial, other):
        return None if serial != other else "these are the same"

    @staticmethod
    def newest(at, serial):
        """A serial that the servers have is one of those that they have."""
        return f"the servers have the serials {at.serials()}" if at.rest and at.serials() and int(serial) not in at.serials() else None

    @staticmethod
    def declares(at, key):
        return f"it declares {sorted(at.values)}" if at.values is not None and key not in at.values else None

    def endpoints(self, at, count, zones):
        problem = next(filter(None, (self.part(at, zone) for zone in zones.split(", "))), None)
        return problem or (at.values is not None and int(count) not in at.endpoints() and f"it declares {at.endpoints()}" or None)

    def answers(self, at, zone, key):
        return self.part(at, zone) or self.declares(at, key)

    @staticmethod
    def part(at, zone):
        """A zone is called by its name in DNS, or by that of its object."""
        return None if zone.rstrip(".") in at.zone_called() else f"it is in zone {at.zone}"

    @staticmethod
    def ttl(at, served, own, kind, name):
        if at.values is not None and int(own) not in at.ttls():
            return f"it declares the TTLs {sorted(at.ttls())}"
        declared = at.ttls_of(f"{kind.lower()}.{name}")
        return None if int(served) in declared else f"{name} declares {sorted(declared)}"

    def path(self, at, instance, address, port, _, __):
        problem = self.of_fleet(at, instance + "-0")
        return problem or port != "53" and "clients ask at port 53" or at.path_addresses() and address not in at.path_addresses() and f"nobody has the address {address}" or None

    @staticmethod
    def further(at, names, address, port, _, __):
        known = at.path_addresses()
        return known and port == "53" and address not in known and f"nobody has the address {address}" or None

    def contested(self, at, key, pod, count, seen):
        """The first value is the one that it was overwritten with, and it was not overwritten more often than by hand."""
        if problem := self.of_fleet(at, pod):
            return problem
        values, times = at.overwritten(key)
        if times is None:
            return None
        if int(count) > times:
            return f"it was overwritten {times} times"
        first = re.sub(r" and \d+ more$", "", seen).split(", ")[0]
        return values and first not in values and f"{first} is not what it was overwritten with" or None


class Place:
    """What a message is about."""

    strict = True  # each clause at rest has a rule

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

    def expected(self):
        """Returns how many pods or instances are to be ready."""
        return 1 if self.kind == "bind9instance" else self.size()

    def all_pods(self):
        return set(self.world.pods.values())

    def pods(self):
        return {p for p in self.world.pods.values() if p.startswith(self.fleet + "-")}

    def addresses(self, pod):
        return {a for a, p in self.world.pods.items() if p == pod}

    def primaries(self):
        return sum(p.startswith(self.fleet + "-primary-") for p in self.pods())

    def zones(self):
        return sum(z["fleet"] == self.fleet for z in self.world.zones.values())

    def zone_names(self):
        return set(self.world.zones)

    def zone_called(self):
        return {self.zone, self.world.zones[self.zone]["object"]} if self.zone else set()

    def serials(self):
        """Returns what the servers of the zone say at rest."""
        return {t["serial"] for t in self.world.transfers if t["zone"] == self.zone and abs(t["begin"] - self.rest) < 10}

    def declared(self):
        """Returns how many names and types objects declare in the zone at rest, each object by itself."""
        if not self.rest:
            return None
        objects = (o for o, zone in self.world.zone_of.items() if zone == self.zone)
        return sum(len(v.values) for o in objects for v in self.world.objects.possible(o, self.rest, self.rest) if v)

    @staticmethod
    def programmed():
        return None

    def endpoints(self):
        """Returns how many endpoints there are."""
        return {len(self.values)}

    def ttls(self):
        return {v[0] for v in self.values.values()}

    def ttls_of(self, name):
        other = self.world.objects.versions.get(name, [])
        if self.rest:
            other = [v for v in self.world.objects.possible(name, self.rest, self.rest) if v]
        return {v[0] for o in other for v in o.values.values()}

    def is_known(self, name):
        return name in self.world.objects.versions

    def is_declared(self, key):
        """Reports whether an object declares a name and type, at rest; otherwise that may have been so a moment ago."""
        names = self.world.objects.by_key.get(key, ())
        return bool(self.rest) and any(v and key in v.values for n in names for v in self.world.objects.possible(n, self.rest, self.rest))

    def path_addresses(self):
        return {address for _, address, _, _ in self.world.paths}

    def overwritten(self, key):
        """Returns the values that a name and type was overwritten with in fights, none if by others as well, and how often it was by hand."""
        hands, fights = [h for h in self.world.hands if h["key"] == key], [f for f in self.world.fights if f["key"] == key]
        alone = {h["fault"] for h in hands} <= {f["fault"] for f in fights}
        return {f["value"] for f in fights} if alone else set(), len(hands)


class Facts:
    """A place at rest with facts from elsewhere.

    The facts have "pods"; "zones": name -> object, pods, primaries, serial, declared, programmed; "objects": "kind.name" -> zones, and values:
    ["name type", TTL] for each declaration; "messages": ["kind.name", text]."""

    strict = False
    rest = True

    def __init__(self, facts, kind_and_name):
        self.facts = facts
        self.kind, _, name = kind_and_name.partition(".")
        own = facts["objects"].get(kind_and_name)
        zones = [z for z, f in facts["zones"].items() if f["object"] == name] if self.kind == "dnszone" else own["zones"] if own else []
        self.zone, self.of = ", ".join(zones), facts["zones"][zones[0]] if zones else {}
        self.called = {*zones, *(facts["zones"][z]["object"] for z in zones)}
        self.declarations = own["values"] if own else []
        self.values = {key for key, _ in own["values"]} if own else None

    def size(self):
        return len(self.of["pods"]) if self.of else None

    def expected(self):
        return 1 if self.kind == "bind9instance" else len(self.facts["pods"])

    def all_pods(self):
        return set(self.facts["pods"])

    pods = all_pods

    @staticmethod
    def addresses(_):
        return set()

    def primaries(self):
        return self.of.get("primaries")

    def zones(self):
        return len(self.facts["zones"])

    def zone_names(self):
        return set(self.facts["zones"])

    def zone_called(self):
        return self.called

    def endpoints(self):
        """Two endpoints of one name and type are one RRset."""
        return {len(self.declarations), len(self.values)}

    def serials(self):
        return {self.of["serial"]} if self.of else set()

    def declared(self):
        return self.of.get("declared")

    def programmed(self):
        return self.of.get("programmed")

    def ttls(self):
        return {ttl for _, ttl in self.declarations}

    def ttls_of(self, name):
        return {ttl for _, ttl in self.facts["objects"].get(name, {"values": []})["values"]}

    def is_known(self, name):
        return name in self.facts["objects"]

    def is_declared(self, key):
        return any(key == k for o in self.facts["objects"].values() for k, _ in o["values"])

    @staticmethod
    def path_addresses():
        return set()

    @staticmethod
    def overwritten(_):
        return set(), None


def problems(facts):
    """Returns what is not so in messages at rest."""
    rules, found = Sentences(), []
    for name, text in facts["messages"]:
        problem = rules.wrong_at(Facts(facts, name), text)
        if problem:
            found.append(f"{name}: {text}: {problem}")
    return found


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print("\n".join(problems(json.load(file))), end="")
