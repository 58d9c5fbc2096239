"""Judges histories: python3 judge.py DIRECTORY prints violations, the table of faults, and the result in one line.

The claim of a row is that at some moment of the request (of a list: up to MAX_AGE before it), the server answered what is declared.
A row is judged only where it must be one or the other: the last answer before that span, all answers in it, and the first one after it
agree, all right or all wrong, with what was declared during all that time. A row that is judged wrong cannot be explained by any
order in which things happened, unless a server changed its answer and changed it back between two of our questions.
"""

import bisect
import collections
import functools
import glob
import os
import re
import sys

import history
import model
import sentences

MAX_AGE = 1.05  # of the answers behind a list: --max-age of the API server, and a margin for the clock
UNREACHABLE_BOUND = 3.0  # for how long a server may be called unreachable after a fault between it and the API server
ZONE_BACK_BOUND = 1.0  # for how long a server may be called one that refuses after somebody deleted a zone on it
FOREIGN_WINDOW = 5.0  # from the beginning of a change of foreign data to its UPDATE, which may have to be signed anew
PATH_AGE = 3.0  # how old the last answer to a client may be: the API server asks each second, and waits for up to two
NEAR = 5.0  # how long after a fault a row counts as one under faults
INFORMER_LAG = 2.0  # for how long a verdict may know nothing of a write of another object than the one that is asked for
# Faults that keep the API server from learning what the objects are.
BLINDING = {"stop-kubernetes", "kill-kubernetes", "cut-kubernetes", "stop-component", "stale-cache", "reorder-watches", "miss-events"}
KUBERNETES_FAULTS = {"stop-kubernetes", "kill-kubernetes"}
KUBERNETES_BACK = 60.0  # after which time Kubernetes' own controllers work again
VANTAGE_WAIT = 5.5  # for how long the API server waits for a vantage, and a margin for the clock
KNOWN_PATH = 15.0  # after which time a path is known to the API server
UNSEEN_AFTER = 4.0  # within which time a path is asked again that somebody wants to know of
LOOK = 1.5  # by which the observer may see a change of pods and endpoints late, or miss one that does not last
CONTESTED_AFTER = 12  # corrections that are overwritten
# What a client gets where a path has a state.
GETS = {"InSync": {"answer"}, "Stale": {"answer"}, "Divergent": {"answer"}, "Unreachable": {"silent", "closed"}, "Refused": {"REFUSED"},
        "NotLoaded": {"SERVFAIL", "NOTAUTH"}, "Lame": {"lame", "NXDOMAIN"}}
NO_ANSWER = {"silent", "closed"}
ONE_PROTOCOL = {"cut-path", "cut-clients", "refuse-tcp"}  # faults that may leave the other protocol alone
NOT_ASKED = "it has not been asked yet"
NOT_DECLARED = ("dnszone", "bind9instance", "bind9cluster")  # by the workload
SLOW = 5.0  # convergence that takes longer is explained
PROPAGATION = 2.0  # for how long a change may be on its way when the convergence after a fault is measured
HAND_WINDOW = 1.0  # after a change by hand, other servers follow


class World:
    """One history, indexed."""

    def __init__(self, history_entries):
        self.zones, self.fleets = {}, {}
        self.objects, self.zone_of = model.Objects(), {}
        self.series = collections.defaultdict(lambda: collections.defaultdict(model.Series))
        self.paths = collections.defaultdict(model.Overlapping)  # (vantage, address, protocol, zone)
        self.instances, self.balancers = {}, set()  # whose Service has an address; those of load balancers
        self.ready, self.has_endpoints = collections.defaultdict(list), collections.defaultdict(list)  # by pod, by Service: (begin, end, yes)
        self.pods, self.sweeps, self.latest = {}, collections.defaultdict(list), collections.defaultdict(dict)
        entries = collections.defaultdict(list)
        for entry in history_entries:
            getattr(self, "take_" + entry["op"], entries[entry["op"]].append)(entry)
        self.faults, self.hands, self.foreign, self.remade = entries["fault"], entries["hand"], entries["foreign"], entries["remade"]
        self.statuses, self.stored, self.watch = entries["status"], entries["stored"], entries["watch"]
        self.fights = entries["fight"]
        self.rests, self.transfers, self.broken = entries["rested"], entries["transfer"], entries["broken"]
        self.faults.sort(key=lambda f: f["begin"])
        self.blind = [f for f in self.faults if f["kind"] in BLINDING]
        self.hands.sort(key=lambda h: h["begin"])
        self.longest_hand = max((h["end"] - h["begin"] for h in self.hands), default=0)
        self.zone_of_key = functools.cache(self.zone_of_key)

    def take_world(self, entry):
        self.zones, self.fleets, self.balancers = entry["zones"], entry["fleets"], set(entry.get("balancers", ()))

    def take_write(self, entry):
        zone = entry["zone"]
        self.objects.write(entry, zone, self.zones[zone]["ttl"] if zone else 0)
        name = f'{entry["kind"].lower()}.{entry["name"]}'
        self.zone_of[name] = zone

    def take_sweep(self, entry):
        self.sweeps[entry["address"]].append({"begin": entry["begin"], "end": entry["end"], "address": entry["address"]})
        answers = self.latest[entry["address"]]  # a sweep has what differs from the one before
        answers.update(entry["answers"])
        for key, text in answers.items():
            self.series[entry["address"]][key].add(entry["begin"], entry["end"], text)

    def take_path(self, entry):
        self.instances[entry["address"]] = entry.get("instance")
        self.paths[entry.get("vantage", ""), entry["address"], entry["protocol"], entry["zone"]].add(entry["begin"], entry["end"], entry["text"])

    def take_ready(self, entry):
        for pod, ready in entry["pods"].items():
            self.note(self.ready[pod], entry, ready)

    def take_endpoints(self, entry):
        for service in entry["services"].keys() | self.has_endpoints.keys():
            self.note(self.has_endpoints[service], entry, bool(entry["services"].get(service)))

    @staticmethod
    def note(looks, entry, yes):
        if not looks or looks[-1][2] != yes:
            looks.append((entry["begin"], entry["end"], yes))

    @staticmethod
    def possible(looks, begin, end):
        """Returns what may have been so at a moment between two times: a set of True and False, empty if nothing is known."""
        return {yes for i, (b, _, yes) in enumerate(looks) if b - LOOK <= end and (i + 1 == len(looks) or looks[i + 1][1] >= begin)}

    def unrouted(self):
        """Returns when Services had no endpoints although their pods were ready, after Kubernetes itself had been disturbed: its controllers
        take up to half a minute to go on."""
        found = []
        for service, looks in self.has_endpoints.items():
            changes = sorted([(b, "routed", yes) for b, _, yes in looks] + [(b, "ready", yes) for b, _, yes in self.ready[service + "-0"]])
            now, since = {}, None
            for at, what, yes in changes:
                now[what] = yes
                kept = now == {"ready": True, "routed": False}
                if kept and since is None:
                    since = at
                elif not kept and since is not None:
                    if any(f["kind"] in KUBERNETES_FAULTS for f in self.faults_between(since - KUBERNETES_BACK, at, None)):
                        found.append({"begin": since, "end": at, "scope": [service + "-0"], "fleet": service.split("-")[0]})
                    since = None
        return found

    def client_paths(self, zone):
        """Returns (address, protocol, answers) of the ways of clients here to the Services of a zone's servers, without load balancers."""
        return [(a, p, s) for (v, a, p, z), s in self.paths.items() if not v and z == zone and a not in self.balancers]

    def take_pods(self, entry):
        self.pods.update(entry["addresses"])

    def zone_of_key(self, key):
        name = key.split(" ")[0]
        return next(z for z in self.zones if name.endswith("." + z + ".") or name == z + ".")

    def is_foreign(self, key):
        return key in self.zones[self.zone_of_key(key)]["foreign"]

    def hand_near(self, key, begin, end, fault=None):
        """Reports whether a change by hand, other than that of a fault, may show or be mended between begin and end at a key."""
        first = bisect.bisect_left(self.hands, begin - HAND_WINDOW - self.longest_hand, key=lambda h: h["begin"])
        last = bisect.bisect_right(self.hands, end, key=lambda h: h["begin"])
        return any(h["key"] in (key, "*") and h["zone"] == self.zone_of_key(key) and h["fault"] != fault
                   and h["end"] + HAND_WINDOW >= begin for h in self.hands[first:last])

    def lag(self, begin, end):
        """Returns how old the API server's knowledge of objects may be between two times: without Kubernetes it learns nothing."""
        start = begin - INFORMER_LAG
        for fault in reversed(self.blind):
            if fault["begin"] <= end and fault["end"] >= start:
                start = min(start, fault["begin"] - INFORMER_LAG)
        return begin - start

    def faults_between(self, begin, end, pod):
        """Returns the faults that concern a pod (None: any), active at a moment between begin and end."""
        return [f for f in self.faults if f["begin"] <= end and f["end"] >= begin and (pod is None or "*" in f["scope"] or pod in f["scope"])]


class Judge:
    def __init__(self, world):
        self.world, self.sentences = world, sentences.Sentences(world)
        self.rows, self.quiet, self.undecided = 0, 0, 0
        self.at_rest = False
        self.violations = collections.defaultdict(list)

    def violate(self, kind, at, text):
        active = ", ".join(f'{f["kind"]}({f["target"]})' for f in self.world.faults if f["begin"] - 3 <= at <= f["end"] + 3)
        self.violations[kind].append(f"{at:.3f} {text} [faults near: {active or 'none'}]")

    def run(self):
        for entry in self.world.statuses:
            self.at_rest = not self.world.faults_between(entry["begin"] - NEAR, entry["end"], None)
            for item in entry["items"]:
                self.judge_sentences(entry, item, item["generation"], item.get("said", []))
                kind = item["name"].split(".")[0]
                if kind == "dnszone":
                    self.judge_zone(entry, item)
                elif kind not in ("bind9instance", "bind9cluster"):
                    self.judge_item(entry, item)
        for entry in self.world.stored:
            for item in entry["items"]:
                for _, _, generation, message in item["conditions"].values():
                    self.judge_sentences(entry, item, generation, [message])
        for entry in self.world.rests:
            self.judge_rest(entry)
        self.judge_watch()
        for entry in self.world.remade:
            if not entry["there"]:
                self.violate("remade", entry["end"], f'{entry["object"]} was deleted and is not made again')
        for entry in self.world.fights:
            self.judge_fight(entry)
        self.judge_cuts()
        for entry in self.world.broken:
            self.violate("broken", entry["at"], f'{entry["of"]}: {entry["text"]}')

    def judge_sentences(self, entry, item, generation, messages, rest=None):
        """Asks whether the numbers and names in messages about an object are so."""
        for message in messages:
            problem = message and self.sentences.wrong(item["name"], item["uid"], generation, message, rest)
            if problem:
                self.violate("sentence", entry["begin"], f'{item["name"]} generation {generation}: {message}: {problem}')

    # Rows

    def count(self):
        """Counts a row that was judged. One at rest is not counted among those under faults."""
        if self.at_rest:
            self.quiet += 1
        else:
            self.rows += 1

    def span(self, entry):
        return entry["begin"] - (MAX_AGE if entry["verb"] == "list" else 0), entry["end"]

    def decide_key(self, address, key, entry, own, version):
        """Returns True where the server answered right all the time, False where it never did, None where that is open."""
        covered = self.world.series[address][key].around(*self.span(entry)) if address in self.world.series else None
        if covered is None:
            return None
        begin, end, texts = covered
        right = self.world.objects.expected(key, begin, end, own, version, self.world.lag(begin, end))
        if "REFUSED" in texts and any(f["kind"] == "allow-query" for f in self.world.faults_between(begin, end, self.world.pods[address])):
            return None  # strangers are refused, of which the observer is one
        if right == {model.NONE} and {"alias", "referral"} & set(texts):
            return None  # foreign data hides a former name: whether its own data has gone cannot be seen
        if len(right) == 1 and set(texts) == right:
            return True
        if "silent" in texts or right & set(texts):
            return None
        return None if self.world.hand_near(key, begin, end) else False

    def judge_item(self, entry, item):
        world, name = self.world, item["name"]
        version, after = world.objects.evaluated(name, item["uid"], item["generation"])
        if version is None:
            self.undecided += len(item["rows"])
            return
        self.judge_age(entry, item, version)
        zone = world.zone_of.get(name)
        decisions = []
        for address, state, row_zone, pod, message in item["rows"]:
            mine = [k for k in world.objects.own_keys[name, item["uid"]] if world.zone_of_key(k) == (row_zone or zone)]
            verdicts = {k: self.decide_key(address, k, entry, name, version) for k in mine}
            wrong = [k for k, v in verdicts.items() if v is False]
            # The next version may have come to the server and gone again from sight between two questions, and so may this one.
            if wrong and (after is not None and after.begin <= self.end_of(address, wrong, entry) or self.is_unseen(address, wrong, entry, version, pod)):
                wrong, verdicts = [], {None: None}
            decisions.append(self.judge_row(entry, item, (address, state, pod, message), verdicts, wrong))
        zones = {row[2] or zone for row in item["rows"]}
        if item["phase"] == "InSync":
            self.judge_clients(entry, item, zones)
        elif decisions and all(decisions) and all(row[1] == "InSync" for row in item["rows"]):
            text = (f'{entry["verb"]} {name} generation {item["generation"]}: {item["phase"]} {item["reason"]} {item["message"]}'
                    f", and every server answers what is declared")
            if item.get("propagated") not in ("NotAnswered", "Pending"):
                self.violate("falseOutOfSync", entry["begin"], text)
            elif self.decide_clients(entry, zones, item["propagated"]) is False:
                self.violate("falseOutOfSync", entry["begin"], text + ", and every client got an answer on every path")

    def on_paths(self, zone, begin, end):
        """Returns what clients here got on each path to a zone that was there all the time; None in its place for one that came or went."""
        found = []
        for address, protocol, series in self.world.client_paths(zone):
            if not series.begins or series.ends[-1] < begin or series.begins[0] > end:
                continue
            covered = series.around(begin, end)
            found.append((address, protocol, set(covered[2]) if covered else None))
        return found

    def known_since(self, begin, end):
        """Returns how old what the API server knows of paths may be."""
        return begin - PATH_AGE - (self.world.lag(begin, end) - INFORMER_LAG)

    def decide_clients(self, entry, zones, reason):
        """Returns True where a client got no answer on a path to some zones, False where all got one all the time, None where that is open."""
        begin, end = self.span(entry)
        since = begin - KNOWN_PATH if reason == "Pending" else self.known_since(begin, end)
        seen = [texts for zone in zones for _, _, texts in self.on_paths(zone, since, end)]
        fleets = {self.world.zones[z]["fleet"] for z in zones if z in self.world.zones}
        bound = KNOWN_PATH if reason == "Pending" else UNREACHABLE_BOUND
        near = [f for f in self.world.faults_between(begin - bound, end, None) if "*" in f["scope"] or f["fleet"] in fleets]
        if reason != "Pending" and any(texts and texts != {"answer"} for texts in seen):
            self.count()
            return True
        if not seen or None in seen or near:
            self.undecided += 1
            return None
        self.count()
        return False

    def judge_clients(self, entry, item, zones):
        """Nothing is in sync while clients get no answer on a path. Who is refused may be one of those that the servers are not for."""
        begin, end = self.span(entry)
        for zone in zones:
            for address, protocol, texts in self.on_paths(zone, self.known_since(begin, end), end):
                if texts and texts <= NO_ANSWER and not self.was_open(zone, address, self.known_since(begin, end), end):
                    self.violate("falsePath", entry["begin"], f'{entry["verb"]} {item["name"]}: InSync, and clients got no answer at {address} over '
                                 f"{protocol} all the time")

    def was_open(self, zone, address, begin, end):
        """Reports whether clients here were answered at an address over another protocol: then it may have answered over this one, too, for a
        moment between two questions."""
        instance = self.world.instances.get(address)
        if any(f["kind"] in ONE_PROTOCOL for f in self.world.faults_between(begin - NEAR, end, instance and instance + "-0")):
            return False
        return any(texts and "answer" in texts for a, _, texts in self.on_paths(zone, begin, end) if a == address)

    def end_of(self, address, keys, entry):
        return max(self.world.series[address][k].around(*self.span(entry))[1] for k in keys)

    def is_unseen(self, address, keys, entry, version, pod):
        """Reports whether a server may have had a version unseen: once it was written, nothing was asked until somebody had deleted the zone there."""
        end = self.end_of(address, keys, entry)
        for series in (self.world.series[address][k] for k in keys):
            if {t for b, t in zip(series.begins, series.texts) if version.end < b <= end} != {"REFUSED"}:
                return False
        return any(f["kind"] == "delzone" for f in self.world.faults_between(version.begin, end, pod))

    def judge_row(self, entry, item, row, verdicts, wrong):
        """Judges one row and returns whether the server is known to be right."""
        address, state, pod, message = row
        where = f'{entry["verb"]} {item["name"]} generation {item["generation"]} on {pod} ({address}): {state} {message}'
        if self.is_stopped(entry, pod):
            self.count()
            if state == "InSync":
                self.violate("falseInSync", entry["begin"], where + ", and the server was stopped all the time")
            return None
        if wrong:
            self.count()
            if state == "InSync":
                _, _, texts = self.world.series[address][wrong[0]].around(*self.span(entry))
                self.violate("falseInSync", entry["begin"], f"{where}, and the answers for {wrong[0]} were {texts}")
            return False
        if not verdicts or not all(v is True for v in verdicts.values()):
            self.undecided += 1
            return None
        if (state == "Unreachable" and self.is_excused(entry, pod) or state == "Refused" and self.is_zone_deleted(entry, pod)
                or state != "InSync" and self.is_touched(verdicts, entry)):
            self.undecided += 1
            return None
        self.count()
        if state != "InSync":
            self.violate("falseOutOfSync", entry["begin"], f"{where}, and all answers were as declared")
        return True

    def is_stopped(self, entry, pod):
        """Reports whether a server was stopped during the whole of a GET: it cannot have answered."""
        begin, end = self.span(entry)
        return any(f["kind"] == "stop-named" and pod in f["scope"] and f["started"] <= begin and f["ending"] >= end for f in self.world.faults)

    def is_touched(self, keys, entry):
        """Reports whether somebody changed the data of a row by hand: that may have come and gone between two questions."""
        begin, end = self.span(entry)
        return any(self.world.hand_near(key, begin, end) for key in keys)

    def is_excused(self, entry, pod):
        """Reports whether a fault may have kept the API server from reaching a pod."""
        begin, end = self.span(entry)
        return bool(self.world.faults_between(begin - UNREACHABLE_BOUND, end, pod))

    def is_zone_deleted(self, entry, pod):
        """Reports whether somebody deleted a zone on a pod: it may have come back between two questions."""
        begin, end = self.span(entry)
        return any(f["kind"] == "delzone" for f in self.world.faults_between(begin - ZONE_BACK_BOUND, end, pod))

    def judge_age(self, entry, item, version):
        """A GET is about the last version that was written before it, or a later one."""
        if entry["verb"] != "get":
            return
        versions = self.world.objects.versions[item["name"]]
        newer = [v for v in versions[versions.index(version) + 1:] if v.end < entry["begin"]]
        if newer:
            kind = "falseInSync" if item["phase"] == "InSync" else "stale"
            self.violate(kind, entry["begin"], f'get {item["name"]}: {item["phase"]} about generation {item["generation"]}, '
                         f"and generation {newer[-1].generation} was written {entry['begin'] - newer[0].end:.3f} s before")

    def judge_paths(self, entry, item, zone):
        """Compares what a zone says of the ways of clients with what a client got there all the time for a while."""
        begin, end = self.span(entry)
        for row in item.get("paths", []):
            address, protocol, state, instance, of, vantage, observed, message, _ = row + ["Service", "", None, "", []][len(row) - 4:]
            where = f'{entry["verb"]} {item["name"]}: {address} over {protocol}{" from " + vantage if vantage else ""} is {state} {message}'
            self.judge_readiness(entry, where, instance, message)
            if of == "Service" and not vantage and state == "InSync":
                self.judge_endpoints(entry, where, instance, self.world.paths.get((vantage, address, protocol, zone)))
            series = self.world.paths.get((vantage, address, protocol, zone))
            if series is None or state not in GETS or message == NOT_ASKED:
                continue
            if of == "Service" and not vantage:
                window = self.known_since(begin, end), end
            elif observed is not None:
                window = observed - PATH_AGE, observed + VANTAGE_WAIT
            else:
                continue
            covered = series.around(*window)
            near = self.world.faults_between(window[0] - UNREACHABLE_BOUND, end, instance + "-0")
            texts = set(covered[2]) if covered else set()
            if not texts or any(f["kind"] == "lose-packets" for f in near) or texts & GETS[state] and texts - GETS[state]:
                self.undecided += 1
            elif texts <= GETS[state]:
                self.count()
            elif state != "InSync" and any(f["kind"] != "cut-clients" or vantage for f in near) or state == "InSync" and not vantage and self.was_open(zone, address, *window):
                self.undecided += 1
            else:
                self.count()
                self.violate("falsePath", entry["begin"], f"{where}, and clients got {', '.join(sorted(texts))} all the time")

    def judge_readiness(self, entry, where, instance, message):
        """A Service without endpoints is one whose pod is not ready."""
        if "the Service has no endpoints" in message:
            begin, end = self.span(entry)
            if self.world.possible(self.world.ready[instance + "-0"], begin - self.world.lag(begin, end) - LOOK, end) == {True}:
                self.violate("falsePath", entry["begin"], where + ", and the pod was ready all the time")

    def judge_endpoints(self, entry, where, instance, series):
        """Nobody is answered by a Service without endpoints, as soon as kube-proxy knows: until then clients are."""
        begin, end = self.span(entry)
        begin = self.known_since(begin, end) - LOOK
        got = series and series.around(begin, end)
        if got and "answer" in got[2]:
            return
        stale = [f for f in self.world.faults_between(begin - NEAR, end, None) if "kube-proxy" in f["target"] or f["kind"] == "stale-proxy"]
        if not stale and self.world.possible(self.world.has_endpoints[instance], begin, end) == {False}:
            self.violate("falsePath", entry["begin"], where + ", and the Service had no endpoints all the time")

    def judge_answered(self, entry, item):
        """The condition Answered is what the rows of paths amount to."""
        if not item.get("answered"):
            return
        status, reason, message = item["answered"]
        rows = [row + ["Service", "", None, "", []][len(row) - 4:] for row in item["paths"]]
        services = re.search(r"(\d+) of (\d+) paths answer", message)
        further = re.search(r"(\d+) of (\d+) further paths of clients answer", message)
        of_services = int(services[2]) if services else 0
        mine, others = rows[:of_services], rows[of_services:]
        open_rows = [r for r in others if r[4] in ("External", "NodePort") or r[8]] if further else []
        problems = []
        for found, these in ((services, mine), (further, open_rows)):
            right = sum(r[2] == "InSync" for r in these)
            if found and (int(found[1]), int(found[2])) != (right, len(these)):
                problems.append(f"{right} of {len(these)} rows are in sync")
        bad = [r for r in mine if r[2] not in ("InSync", "Refused") and r[7] != NOT_ASKED]
        bad += [r for r in open_rows if r[2] not in ("InSync", "Refused", "Unreachable", "Unknown")]
        open_ones = [r for r in mine + open_rows if r[2] != "InSync" and r not in bad]
        want = "False" if bad else "Unknown" if open_ones else "True"
        if status != want:
            problems.append(f"by its rows it is {want}")
        if problems:
            self.violate("answered", entry["begin"], f'{entry["verb"]} {item["name"]}: Answered is {status} {reason} {message}: {"; ".join(problems)}')

    def judge_cuts(self):
        """A vantage that is cut off from a path sees that, and is asked, while somebody wants to know of the zone."""
        for fault in (f for f in self.world.faults if f["kind"] == "cut-clients"):
            if any(f is not fault and "*" in f["scope"] for f in self.world.faults_between(fault["begin"] - NEAR, fault["end"], None)):
                continue
            instance, expected, seen = fault["target"].removesuffix("-0"), False, False
            for entry in self.world.statuses:
                for item in entry["items"] if entry["begin"] <= fault["ending"] else ():
                    mine = [row for row in item.get("paths", []) if len(row) > 5 and row[3] == instance and row[5]]
                    expected = expected or bool(mine) and fault["started"] + UNSEEN_AFTER <= entry["begin"]
                    seen = seen or any(row[6] and row[6] >= fault["started"] and row[2] != "InSync" for row in mine)
            if expected and not seen:
                self.violate("unseen", fault["ending"], f'clients elsewhere are cut off from {instance}, and no path of a vantage says so')

    def judge_fight(self, fight):
        """Whoever is overwritten again and again says so."""
        away = [f for f in self.world.faults_between(fight["begin"] - NEAR, fight["end"], None) if "*" in f["scope"]]
        if not fight["contested"] and fight["count"] > CONTESTED_AFTER and not away:
            self.violate("uncontested", fight["end"], f'{fight["key"]} on {fight["pod"]} was overwritten {fight["count"]} times, and the zone is not contested')

    def judge_zone(self, entry, item):
        world = self.world
        zone = next((z for z in world.zones if world.zones[z]["object"] == item["name"].removeprefix("dnszone.")), None)
        if zone is None:
            return
        self.judge_paths(entry, item, zone)
        self.judge_answered(entry, item)
        if item["phase"] == "InSync":
            self.judge_clients(entry, item, [zone])
        if item["phase"] == "InSync" and len(item["rows"]) < world.fleets[world.zones[zone]["fleet"]]:
            self.violate("falseInSync", entry["begin"], f'{item["name"]} is InSync with {len(item["rows"])} rows')
        begin, end = self.span(entry)
        begin -= world.lag(begin, end)
        for address, state, _, pod, _ in item["rows"]:
            if state != "InSync" or address not in world.series:
                continue
            self.count()
            for key in world.zones[zone]["keys"]:
                if world.is_foreign(key) or world.objects.changed(key, begin, end + 1):
                    continue
                if self.decide_key(address, key, entry, None, None) is False:
                    _, _, texts = world.series[address][key].around(*self.span(entry))
                    self.violate("falseInSync", entry["begin"], f'{entry["verb"]} {item["name"]} on {pod} ({address}): InSync, and the '
                                 f"answers for {key} were {texts}")
                    break

    # Rest

    def judge_rest(self, entry):
        world = self.world
        if entry["differ"]:
            self.violate("watch", entry["end"], f'the replay of the watch differs from the list: {entry["differ"][:5]}')
        self.judge_replay(entry)
        for address, answers in world.series.items():
            for key, series in answers.items():
                if world.is_foreign(key):
                    continue
                near = [t for b, e, t in zip(series.begins, series.ends, series.texts) if entry["begin"] <= b and e <= entry["end"]]
                right = world.objects.expected(key, entry["begin"], entry["end"])
                if near and near[-1] not in right and not world.hand_near(key, entry["begin"], entry["end"]):
                    self.violate("lost", entry["end"], f'{key} on {world.pods[address]} ({address}): {near[-1]}, declared is {sorted(right)}')
        near = [s for s in world.stored if entry["begin"] <= s["begin"] and s["end"] <= entry["end"]]
        for item in near[-1]["items"]:
            self.judge_stored(entry, item)
        for look in [s for s in world.statuses if s["verb"] == "list" and entry["begin"] <= s["begin"] and s["end"] <= entry["end"]][-1:]:
            for item in look["items"]:
                if (item.get("answered") or [""])[0] == "False":
                    self.violate("answered", look["begin"], f'{item["name"]} at rest: {item["answered"]}')
                self.judge_sentences(look, item, item["generation"], item.get("said", []), entry["end"])
        transfers = [t for t in world.transfers if entry["begin"] - 5 <= t["begin"] <= entry["end"] + 5]
        for transfer in transfers:
            self.judge_transfer(entry, transfer)
        serials = collections.defaultdict(set)
        for transfer in transfers:
            serials[transfer["zone"]].add(transfer["serial"])
        for zone, found in serials.items():
            if len(found) > 1:
                self.violate("lost", entry["end"], f"the servers of {zone} have different serials: {sorted(found)}")

    def judge_stored(self, entry, item):
        name, conditions = item["name"], item["conditions"]
        for _, _, generation, message in conditions.values():
            self.judge_sentences(entry, item, generation, [message], entry["end"])
        kind = name.split(".")[0]
        want = {"dnsendpoint": ["Accepted", "Programmed"], **dict.fromkeys(NOT_DECLARED, ["Ready"])}.get(kind, ["Accepted", "Programmed", "Ready"])
        if kind not in NOT_DECLARED:
            current = self.world.objects.possible(name, entry["begin"], entry["end"])
            if not any(version and version.values for version in current):
                self.violate("lost", entry["end"], f"{name} should be gone")
                return
        for kind in want:
            status, reason, generation, message = conditions.get(kind, ["absent", "", 0, ""])
            if status != "True" or generation != item["generation"]:
                self.violate("stored", entry["end"], f'{name}: {kind} is {status} {reason} for generation {generation} of '
                             f'{item["generation"]}: {message}')

    def judge_transfer(self, entry, transfer):
        """Compares a zone transfer, read by another library, with what is declared, and what others put there."""
        world, zone = self.world, transfer["zone"]
        for key in world.zones[zone]["keys"]:
            right, found = world.objects.expected(key, entry["begin"], entry["end"]), transfer["rrsets"].get(key, model.NONE)
            if key in world.zones[zone]["foreign"]:
                right = self.foreign_at(zone, key, entry["begin"])
            if right is not None and found not in right:
                self.violate("lost", entry["end"], f'transfer of {zone} from {transfer["pod"]}: {key} is {found}, not {sorted(right)}')

    def foreign_at(self, zone, key, at):
        """Returns what was seen last on all servers at a key that no object declares; None if that is open."""
        seen = [f for f in self.world.foreign if f["key"] == key and f["end"] <= at]
        tried = [h for h in self.world.hands if h["key"] == key and h["zone"] == zone and h["begin"] <= at]
        if not tried:
            return {model.NONE}
        if not seen or seen[-1]["begin"] < tried[-1]["begin"] - FOREIGN_WINDOW:
            return None
        return {seen[-1]["value"]}

    # Watches

    def judge_watch(self):
        last, known = 0, set()
        for event in self.world.watch:
            kind = event["type"]
            if kind == "LIST":
                last, known = int(event["version"]), set(event["states"])
            elif kind in ("ADDED", "MODIFIED", "DELETED"):
                name = event["name"]
                if int(event["version"]) <= last:
                    self.violate("watch", event["at"], f'{kind} {name} has resourceVersion {event["version"]} after {last}')
                if (name in known) == (kind == "ADDED"):
                    self.violate("misnamed", event["at"], f"{kind} {name}, which the client " + ("knows" if name in known else "does not know"))
                last = int(event["version"])
                (known.discard if kind == "DELETED" else known.add)(name)

    def judge_replay(self, rest):
        """Compares what the events of the watch amount to with a list of the state of rest."""
        lists = [s for s in self.world.statuses if s["verb"] == "list" and rest["begin"] <= s["begin"] and s["end"] <= rest["end"]]
        replay, late = {}, set()
        for event in self.world.watch:
            if event["at"] > rest["end"]:
                break
            if event["type"] == "LIST":
                replay = dict(event["states"])
            elif event["type"] == "DELETED":
                replay.pop(event["name"], None)
            elif event["type"] in ("ADDED", "MODIFIED"):
                replay[event["name"]] = event["state"]
            if event["at"] >= rest["begin"]:
                late.add(event.get("name"))
        listed = {item["name"]: [item["uid"], item["generation"], item["phase"]] for item in lists[-1]["items"]} if lists else replay
        for name in sorted(replay.keys() | listed.keys()):
            if name not in late and replay.get(name) != listed.get(name):
                self.violate("watch", rest["end"], f"by the events of the watch {name} is {replay.get(name)}, and the list has {listed.get(name)}")


class Convergence:
    """How long after the end of a fault everything that is declared is served, every status says so, and what was deleted is back."""

    def __init__(self, world):
        self.world = world
        self.lists = [s for s in world.statuses if s["verb"] == "list"]
        self.disturbances = sorted(world.faults + world.unrouted(), key=lambda d: d["begin"])

    def of(self, fault):
        """Returns (seconds, what came last, seconds by the clock); seconds are None if the history ends before."""
        moments = [(*self.served(fault), "served"), (*self.first(fault, self.lists, self.statuses_wrong), "syncstatus"),
                   (*self.first(fault, self.world.stored, self.stored_wrong), "stored")]
        moments = [(moment, f"{what}: {problem}" if problem else what) for moment, problem, what in moments]
        moments += [(r["end"] if r["there"] else None, "remade") for r in self.world.remade if r["fault"] == fault["id"]]
        if any(m[0] is None for m in moments):
            return None, next(w for m, w in moments if m is None), None
        moment, what = max(moments)
        return moment - fault["end"] - self.disturbed(fault, moment), what, moment - fault["end"]

    def disturbed(self, fault, moment):
        """Returns for how long other faults concerned the same servers between the end of a fault and a moment, or Kubernetes kept clients from
        them."""
        reached, total = fault["end"], 0
        for other in self.disturbances:  # in the order of their beginnings
            begin, end = max(other["begin"], reached), min(other["end"], moment)
            if other is not fault and begin < end and self.meet(fault, other):
                total, reached = total + end - begin, end
        return total

    @staticmethod
    def meet(a, b):
        return "*" in a["scope"] or "*" in b["scope"] or bool(set(a["scope"]) & set(b["scope"])) or a["fleet"] == b["fleet"]

    def first(self, fault, looks, wrong):
        """Returns when the first look after the end of a fault ended that shows nothing wrong, and what was wrong before."""
        start, last = bisect.bisect_left(looks, fault["end"], key=lambda look: look["begin"]), ""
        for look in looks[start:]:
            problem = wrong(fault, look)
            if not problem:
                return (look["end"], last) if last else (fault["end"], "")
            last = problem
        return None, last

    def due(self, key, fault, at):
        """Reports whether what is declared at a key has been so for long enough, and no other hand disturbs it."""
        return not (self.world.objects.changed(key, at - PROPAGATION, at) or self.world.hand_near(key, at - PROPAGATION, at, fault["id"]))

    def served(self, fault):
        """Returns when the last server of those that a fault concerns served all, None if one did not as long as it was there."""
        moments = [(fault["end"], "")]
        last = max(sweeps[-1]["begin"] for sweeps in self.world.sweeps.values())
        for address, sweeps in self.world.sweeps.items():
            pod = self.world.pods[address]
            if not self.is_asked(sweeps, fault["end"]) or not ("*" in fault["scope"] or pod.startswith(fault["fleet"] + "-")):
                continue
            moment, problem = self.first(fault, sweeps, self.answers_wrong)
            if moment is None and sweeps[-1]["begin"] < last - 5:
                continue  # replaced before
            if moment is None:
                return None, problem
            moments.append((moment, problem))
        return max(moments)

    @staticmethod
    def is_asked(sweeps, at):
        """Reports whether a server was asked around a time. One that came later is the matter of other faults."""
        return sweeps[0]["begin"] <= at + NEAR and sweeps[-1]["end"] >= at

    def answers_wrong(self, fault, sweep):
        begin, end = sweep["begin"], sweep["end"]
        for key, series in self.world.series[sweep["address"]].items():
            if self.world.is_foreign(key):
                continue
            i = bisect.bisect_left(series.begins, begin)
            text = series.texts[i] if i < len(series.texts) else model.NONE
            if text not in self.world.objects.expected(key, begin, end) and self.due(key, fault, end):
                return f"{self.world.pods[sweep['address']]} answers {text} for {key}"
        return None

    def statuses_wrong(self, fault, entry):
        return next((f'{item["name"]} is {item["phase"]} {item["message"]} {[row[1:] for row in item["rows"] if row[1] != "InSync"]}' for item in entry["items"]
                     if item["phase"] != "InSync" and self.concerns(fault, item["name"], entry["end"])), None)

    def concerns(self, fault, name, at):
        versions = self.world.objects.versions.get(name)
        if not versions:
            return False
        keys = self.world.objects.keys[name]
        fleets = {self.world.zones[self.world.zone_of_key(k)]["fleet"] for k in keys}
        if "*" not in fault["scope"] and fault["fleet"] not in fleets:
            return False
        return all(self.due(k, fault, at) for k in keys)

    def stored_wrong(self, fault, entry):
        return next((f'{item["name"]}: {item["conditions"].get("Programmed")}' for item in entry["items"]
                     if item["conditions"].get("Programmed", [""])[0] != "True" and not item["deleting"]
                     and self.concerns(fault, item["name"], entry["end"])), None)


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def report(directory):
    """Judges every history in a directory, prints the report, and returns the number of violations."""
    violations, times, rows, quiet, undecided = collections.defaultdict(list), collections.defaultdict(list), 0, 0, 0
    open_faults, clocks = collections.Counter(), []
    for path in sorted(glob.glob(os.path.join(directory, "history-*.jsonl"))):
        world = World(history.read(path))
        judge = Judge(world)
        judge.run()
        rows, quiet, undecided = rows + judge.rows, quiet + judge.quiet, undecided + judge.undecided
        for kind, found in judge.violations.items():
            violations[kind] += found
        convergence = Convergence(world)
        for fault in world.faults:
            seconds, what, clock = convergence.of(fault)
            if seconds is None:
                open_faults[fault["kind"]] += 1
            else:
                clocks.append(clock)
            times[fault["kind"]].append((seconds, what, fault["target"]))
    for kind, found in sorted(violations.items()):
        print(f"{kind}: {len(found)}")
        for text in found[:15]:
            print("  " + text)
    print_table(times)
    slow = sorted(((s, kind, target, what) for kind, found in times.items() for s, what, target in found if s is None or s > SLOW),
                  key=lambda t: -(t[0] or 1e9))
    for seconds, kind, target, what in slow[:20]:
        print(f"slow: {'never' if seconds is None else f'{seconds:.1f} s'} {kind} {target}: {what}")
    measured = [s for found in times.values() for s, _, _ in found if s is not None]
    count = sum(len(found) for found in times.values())
    print(f"rowsAtRest={quiet} undecided={undecided} " + " ".join(f"{k}={len(violations[k])}" for k in ("falsePath", "answered", "unseen", "uncontested", "stale", "stored", "sentence", "watch", "misnamed", "remade", "broken"))
          + f" unconverged={sum(open_faults.values())} p99ByTheClock={percentile(clocks, 0.99):.1f}s")
    print(f'RESULT fault faults={count} rows={rows} falseInSync={len(violations["falseInSync"])} '
          f'falseOutOfSync={len(violations["falseOutOfSync"])} lost={len(violations["lost"])} p99={percentile(measured, 0.99):.1f}s')
    return sum(len(found) for found in violations.values())


def print_table(times):
    print("| fault | times | p50 | p95 | p99 | max | slowest |\n|---|--:|--:|--:|--:|--:|---|")
    every = [t for found in times.values() for t in found]
    for kind, found in [*sorted(times.items()), ("all", every)]:
        measured = [s for s, _, _ in found if s is not None]
        worst = max((t for t in found if t[0] is not None), default=(0, "", ""), key=lambda t: t[0])
        figures = " | ".join(f"{percentile(measured, p):.1f}" for p in (0.5, 0.95, 0.99, 1))
        print(f"| {kind} | {len(found)} | {figures} | {worst[1].partition(':')[0]} {worst[2]} |")


if __name__ == "__main__":
    sys.exit(1 if report(sys.argv[1]) else 0)
