"""Tests the rules for messages, each with one that is so and some that are not: python3 sentences_test.py."""

import collections
import types
import unittest

import model
import sentences

FACTS = {
    "pods": ["dns-primary-0-0", "dns-primary-1-0", "dns-secondary-0-0"],
    "zones": {"one.example": {"object": "one", "pods": ["dns-primary-0-0", "dns-primary-1-0", "dns-secondary-0-0"], "primaries": 2, "serial": 7, "declared": 5, "programmed": 4},
              "two.example": {"object": "two", "pods": ["dns-primary-0-0"], "primaries": 1, "serial": 9, "declared": 0, "programmed": 0}},
    "objects": {"arecord.www": {"zones": ["one.example"], "values": [["www.one.example. A", 60]]},
                "arecord.web": {"zones": ["one.example"], "values": [["www.one.example. A", 30]]},
                "arecord.none": {"zones": [], "values": []},
                "dnsendpoint.some": {"zones": ["one.example"], "values": [["a.one.example. A", 60], ["b.one.example. TXT", 300]]},
                "dnsendpoint.both": {"zones": ["one.example", "two.example"], "values": [["a.one.example. A", 60], ["b.two.example. A", 60], ["b.two.example. A", 60]]}},
}
WWW, ONE, SOME, INSTANCE = "arecord.www", "dnszone.one", "dnsendpoint.some", "bind9instance.dns-primary-0"
FOUGHT = ("somebody else has overwritten {key} on {pod} {count} times since 2026-01-01 00:00:00 UTC, the last time with {seen} (who is not known here: DNS does not tell; "
          "see the server's log); at present it is as declared")


class FactsTest(unittest.TestCase):
    """Messages at rest."""

    def test_rules(self):
        for about, so, *otherwise in (
            (ONE, "3 of 3 servers hold serial 7, 4 of 5 records are programmed", "3 of 3 servers hold serial 8, 4 of 5 records are programmed",
             "2 of 3 servers hold serial 7, 4 of 5 records are programmed", "3 of 4 servers hold serial 7", "3 of 3 servers hold serial 7, 5 of 5 records are programmed"),
            (WWW, "3 of 3 servers in sync", "2 of 3 servers in sync", "4 of 4 servers in sync"),
            (WWW, "2 of 2 primaries in sync; 1 of 1 secondaries in sync", "1 of 1 primaries in sync", "2 of 2 secondaries in sync"),
            (ONE, "", "1 of 2 primaries cannot be programmed", "1 of 2 paths answer"),
            (ONE, "6 of 6 paths answer; 1 of 2 further paths of clients answer", "4 of 4 paths answer", "5 of 6 paths answer", "6 of 6 paths answer; 3 of 2 further paths of clients answer"),
            (ONE, "6 of 6 paths answer; 1 of 7 further paths of clients answer; what clients get is not known of ns1.one.example. at 198.51.100.11:53 over UDP "
             "as seen from far (no answer in time) and 1 more", "6 of 6 paths answer; what clients get is not known of "
             "ns1.one.example. at 198.51.100.11:53 over UDP as seen from far (no answer in time) and 0 more"),
            (WWW, "3 of 3 servers Insecure; the zone is not signed", "3 of 3 servers Secure", "2 of 3 servers Insecure; the zone is not signed", "1 of 3 servers Bogus (dns-primary-0-0): why"),
            (INSTANCE, "1 of 2 zones are out of sync", "1 of 3 zones are out of sync", "0 of 2 zones are out of sync"),
            (INSTANCE, "serves 2 of 2 zones", "serves 3 of 2 zones", "serves 3 of 3 zones"),
            (INSTANCE, "All 1 pods are ready", "All 2 pods are ready", "0 of 1 pods are ready", "No pods are ready: why"),
            ("bind9cluster.dns", "All 3 instances are ready", "All 2 instances are ready", "2 of 3 instances are ready"),
            ("bind9cluster.dns", "Instance dns-primary-0 is ready (1/1 pods)", "Instance dns-primary-7 is ready (1/1 pods)", "Instance dns-primary-0 is ready (0/1 pods)"),
            ("bind9cluster.dns", "", "Instance dns-primary-0 does not exist yet"),
            (INSTANCE, "Pod dns-primary-0-0 is ready", "Pod dns-primary-0-9 is ready"),
            (ONE, "dns-primary-0-0: connection refused", "dns-primary-9-0: connection refused"),
            (ONE, "2 records are also selected (ARecord team/www, ARecord team/web) by older zones, which have them",
             "1 record is also selected (ARecord team/www, ARecord team/web) by an older zone", "3 records are also selected (ARecord team/www, ARecord team/web) by older zones",
             "1 record is also selected (ARecord team/gone) by an older zone"),
            (ONE, "4 records are also selected (ARecord team/www, …) by older zones, which have them"),
            (ONE, "RRsets that would be removed: 3, that would lose values: 0 (a, b and 1 more)", "RRsets that would be removed: 0, that would lose values: 0 (none)",
             "RRsets that would be removed: 3, that would lose values: 0 (a, b and 0 more)"),
            (WWW, "dns-primary-0-0 took the update without an error and does not serve www.one.example. A as declared",
             "dns-primary-0-0 took the update without an error and does not serve w.one.example. A as declared", "dns-primary-9-0 does not serve www.one.example. A as declared"),
            (ONE, "", "dns-primary-0-0 does not serve the zone yet"),
            (WWW, "dns-primary-0-0 holds CNAME data at www.one.example. that no object declares and that cannot stand beside A; remove it or rename the record",
             "dns-primary-0-0 holds CNAME data at www.one.example. that no object declares and that cannot stand beside TXT",
             "dns-primary-0-0 holds A data at www.one.example. that no object declares and that cannot stand beside A"),
            (WWW, "www.one.example. A is not what resolvers get: dns-primary-0-0 holds DNAME data at one.example. that no object declares and that hides it; remove that or rename the record",
             "www.one.example. A is not what resolvers get: dns-primary-0-0 holds DNAME data at two.example. that no object declares and that hides it",
             "w.one.example. A is not what resolvers get: dns-primary-0-0 holds DNAME data at one.example. that no object declares and that hides it"),
            (WWW, "www.one.example. A is not what resolvers get: dns-primary-0-0 answers from zone two.example., which it serves as well; declare the data there",
             "www.one.example. A is not what resolvers get: dns-primary-0-0 answers from zone six.example., which it serves as well"),
            (WWW, "serial 5 is 2 behind the primaries' 7", "serial 5 is 3 behind the primaries' 7"),
            (WWW, "serial 4294967295 is 3 behind 2, the newest of any server, as no primary reports one", "serial 1 is 3 behind 2, the newest of any server, as no primary reports one"),
            (WWW, "serial 9 is ahead of the primaries' 7: no transfer will repair it", "serial 7 is ahead of the primaries' 9: no transfer will repair it"),
            (WWW, "serial 7 is the newest, but the data is missing (1 of 2 RRsets)", "serial 8 is the newest, but the data is missing", "serial 7 is the newest, but the data is missing (3 of 2 RRsets)"),
            (ONE, "what clients get is not known of ns1.one.example. at 192.0.2.1:53 over UDP as seen from far (answers with serial 5, which is 2 behind the servers' 7)"),
            (ONE, "answers with serial 5, which is 2 behind the servers' 7", "answers with serial 5, which is 1 behind the servers' 7"),
            (ONE, "answers with serial 7 of the servers and another SOA record", "answers with serial 6 of the servers and another SOA record"),
            ("dnszone.two", "1 of 1 server in sync", "0 of 1 server in sync"),
            (ONE, "answers with serial 8, which no server has: the newest is 7", "answers with serial 7, which no server has: the newest is 7"),
            (SOME, "2 endpoints are part of zone one.example", "3 endpoints are part of zone one.example", "2 endpoints are part of zone two.example"),
            (SOME, "every primary of zone one.example answers with 2 endpoints", "every primary of zone one.example answers with 1 endpoint"),
            ("dnsendpoint.both", "3 endpoints are part of zones one.example, two.example", "3 endpoints are part of zones one.example, six.example",
             "1 endpoint is part of zones one.example, two.example"),
            ("dnsendpoint.both", "every primary of zones one.example, two.example answers with 2 endpoints"),
            ("arecord.none", "no DNSZone of this namespace selects it", "part of zone one.example"),
            (WWW, "every primary of zone one.example answers with www.one.example. A", "every primary of zone one.example answers with web.one.example. A",
             "every primary of zone two.example answers with www.one.example. A"),
            (WWW, "part of zone one.example", "part of zone two.example"),
            (WWW, "", "zone one.example has not been evaluated yet"),
            (WWW, "TTL 30 is served instead of 60: ARecord team/web declares it for the same name and type, which have one TTL (RFC 2181 section 5.2)",
             "TTL 20 is served instead of 60: ARecord team/web declares it for the same name and type, which have one TTL",
             "TTL 30 is served instead of 90: ARecord team/web declares it for the same name and type, which have one TTL"),
            (WWW, "answers for the zone, but not for www.one.example. A", "answers for the zone, but not for web.one.example. A"),
            (ONE, "clients get no answer from instance dns-primary-0 at 10.96.0.1:53 over UDP (no answer in time); instance dns-primary-1 at 10.96.0.2:53 over TCP (closed)",
             "clients get no answer from instance dns-primary-9 at 10.96.0.1:53 over UDP (no answer in time)"),
            (ONE, FOUGHT.format(key="www.one.example. A", pod="dns-primary-0-0", count=12, seen="203.0.113.66"),
             FOUGHT.format(key="www.one.example. A", pod="dns-primary-9-0", count=12, seen="203.0.113.66")),
            (ONE, "any words of others", "in any words 3 of 2 are", "in any words dns-primary-9-0 fails", "in any words every primary of them", "in any words serial 7"),
        ):
            for text, right in ((so, True), *((t, False) for t in otherwise)):
                found = sentences.problems(FACTS | {"messages": [[about, text]]})
                self.assertEqual(right, not found, f"{about}: {text}: {found}")

    def test_several(self):
        found = sentences.problems(FACTS | {"messages": [[WWW, "part of zone one.example"], [WWW, "part of zone two.example"], [ONE, "3 of 2 servers in sync"]]})
        self.assertEqual(2, len(found), found)


class ContestTest(unittest.TestCase):
    """What a message about a contested name says is compared with the changes by hand."""

    def test_contested(self):
        key = "www.one.example. A"
        hands = [{"key": key, "fault": 1}] * 12
        fights = [{"key": key, "fault": 1, "value": "203.0.113.66"}]

        def wrong(hands, fights, key=key, count=12, seen="203.0.113.66, 192.0.2.1 and 2 more"):
            world = types.SimpleNamespace(
                zones={"one.example": {"object": "one", "fleet": "dns"}}, fleets={"dns": 1}, zone_of={}, pods={"10.0.0.1": "dns-primary-0-0"}, objects=model.Objects(),
                paths={}, transfers=[], hands=hands, fights=fights, stored=collections.defaultdict(list))
            return sentences.Sentences(world).wrong(ONE, "u", 1, FOUGHT.format(key=key, pod="dns-primary-0-0", count=count, seen=seen))

        self.assertIsNone(wrong(hands, fights))
        self.assertIsNone(wrong(hands, fights, count=11))
        self.assertIsNotNone(wrong(hands, fights, count=13))
        self.assertIsNotNone(wrong(hands, fights, seen="192.0.2.1, 203.0.113.66"))
        self.assertIsNotNone(wrong(hands, fights, key="web.one.example. A"))
        self.assertIsNone(wrong([*hands, {"key": key, "fault": 2}], fights, seen="203.0.113.9"))


if __name__ == "__main__":
    unittest.main()
