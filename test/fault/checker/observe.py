"""Observes a world from outside while the driver changes it, and writes down what it sees.

Called with a configuration (JSON) as its argument. It asks every server every question again and again, reads SyncStatus by GET,
LIST and WATCH, and reads the stored objects. On its standard input, "rest" asks for a look at a world in which nothing changes any
more, answered by "rested", and the end of the input ends it. Beside the servers it asks as clients do, without a key, over UDP and TCP: at
every address of every Service, from here and from a far network.
"""

import datetime
import json
import random
import sys
import threading
import time
import traceback

import history
import kube
import questions

PLURALS = [r + "records" for r in ("a", "aaaa", "cname", "ns", "txt", "mx", "srv", "caa")]
# The least time from one sweep to the next: the servers and Lockstep share the machine with the observer.
SWEEP, READ, STORED, PATH = 0.12, 0.2, 0.5, 0.3
SILENT_PATH = 0.15  # from one question to the next where nothing answers: what answers for a moment is to be seen
PATH_QUESTIONS = 16  # for how many questions on one path an answer is waited for
GETS = 4
WATCH_TIMEOUT = 45  # a bookmark comes every 30 seconds
FOLLOW_SECONDS = 5  # how long a watch of pods, Services or endpoints lasts
WATCH_SECONDS = (3, 10, 60)  # how long watches last: most go on from where one before ended
RELIST = 0.2  # how often one begins with a list instead


def outline(item):
    """Returns what matters of a SyncStatus."""
    status, ref = item["status"], item["objectRef"]
    rows = [[r.get("address", "").rpartition(":")[0], r["state"], r.get("zone", item.get("zone", "")), r["pod"], r.get("message", "")]
            for r in item.get("servers", [])]
    paths = [[p["address"].rpartition(":")[0], p["protocol"], p["state"], p.get("instance", ""), p["type"], p.get("vantage", ""), seconds(p.get("observedAt")),
              p.get("message", ""), p.get("nameServers", [])] for p in item.get("paths", [])]
    answered = next(([c["status"], c["reason"], c.get("message", "")] for c in status.get("conditions", []) if c["type"] == "Answered"), None)
    return {"answered": answered, "name": item["metadata"]["name"], "paths": paths, "uid": ref["uid"], "generation": ref.get("generation", 0), "phase": status["phase"],
            "reason": status.get("failureReason", ""), "message": status.get("failureMessage", ""), "rows": rows,
            "propagated": next((c["reason"] for c in status.get("conditions", []) if c["type"] == "Propagated"), ""),
            "said": sorted({c["message"] for c in status.get("conditions", []) if c.get("message")} | {r[4] for r in rows if r[4]})}


def seconds(text):
    """Returns a time of the Kubernetes API in seconds since 1970."""
    return datetime.datetime.fromisoformat(text).timestamp() if text else None


def stored_outline(item, kind):
    """Returns what matters of a stored object."""
    meta, status = item["metadata"], item.get("status", {})
    conditions = {c["type"]: [c["status"], c["reason"], c.get("observedGeneration", 0), c.get("message", "")]
                  for c in status.get("conditions", [])}
    return {"name": f'{kind}.{meta["name"]}', "uid": meta["uid"], "generation": meta["generation"],
            "deleting": "deletionTimestamp" in meta, "conditions": conditions, "serial": status.get("serial")}


class Observer:
    def __init__(self, config):
        self.config, self.namespace = config, config["namespace"]
        self.history = history.Writer(config["history"])
        self.addresses, self.sweeps, self.stopped = {}, {}, threading.Event()
        self.services, self.balanced, self.readiness, self.endpoints = {}, {}, None, None
        self.names = []  # of all SyncStatuses
        self.watched, self.watch_lock, self.version = {}, threading.Lock(), None

    def client(self, timeout=10):
        return kube.Client(self.config["api"], timeout)

    def repeat(self, work, least):
        """Calls work with a client of its own until the end, at most once in a time. What fails is tried again."""
        client = self.client(WATCH_TIMEOUT if work == self.watch else 10)
        while not self.stopped.is_set():
            began = time.monotonic()
            try:
                work(client)
            except kube.Failed as error:
                self.history.write(op="error", at=time.time(), of=work.__name__, text=str(error))
                self.stopped.wait(0.2)
            except (OSError, ValueError, EOFError) as error:
                self.history.write(op="error", at=time.time(), of=work.__name__, text=repr(error))
                self.stopped.wait(0.2)
            except Exception as error:
                if error.__class__.__module__ != "http.client":
                    self.history.write(op="broken", at=time.time(), of=work.__name__, text=traceback.format_exc())
                self.stopped.wait(0.2)
            self.stopped.wait(max(0, least - (time.monotonic() - began)))
        client.close()

    def follow(self, path, note):
        """Returns work that lists objects and watches them for a while. It notes them all, by name, after each change."""
        def work(client):
            got = client.get(path)
            objects = {i["metadata"]["name"]: i for i in got["items"]}
            note(objects.values())
            try:
                for line in client.stream(f'{path}?watch=1&resourceVersion={got["metadata"]["resourceVersion"]}&timeoutSeconds={FOLLOW_SECONDS}'):
                    event = json.loads(line)
                    if event["type"] == "ERROR" or self.stopped.is_set():
                        return
                    name = event["object"]["metadata"]["name"]
                    if event["type"] == "DELETED":
                        objects.pop(name, None)
                    else:
                        objects[name] = event["object"]
                    note(objects.values())
            finally:
                client.close()
        work.__name__ = "follow " + path.rpartition("/")[2]
        return work

    def note_pods(self, pods):
        """Notes the addresses of the servers, and has each one asked for as long as a pod has it."""
        now = time.time()
        addresses, ready = {}, {}
        for pod in pods:
            ready[pod["metadata"]["name"]] = any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))
            address, name = pod.get("status", {}).get("podIP"), pod["metadata"]["name"]
            if address and pod["status"].get("phase") not in ("Failed", "Succeeded"):
                addresses[address] = name
        if ready != self.readiness:
            self.readiness = ready
            self.history.write(op="ready", begin=now, end=now, pods=ready)
        if addresses == self.addresses:
            return
        new = addresses.items() - self.addresses.items()
        self.history.write(op="pods", at=now, addresses=addresses)
        self.addresses = addresses
        for address, pod in new:
            threading.Thread(target=self.ask, args=(address, pod), daemon=True).start()

    def note_services(self, services):
        """Notes the addresses at which clients reach the servers, and has each one asked for as long as a Service has it. What a load balancer had
        is asked to the end: zones go on publishing it."""
        services = [s for s in services if any(p["port"] == 53 for p in s["spec"]["ports"])]
        addresses = {s["spec"]["clusterIP"]: s["metadata"]["name"] for s in services if s["spec"].get("clusterIP", "None") != "None"}
        self.balanced |= {i["ip"]: s["metadata"]["name"] for s in services for i in s["status"].get("loadBalancer", {}).get("ingress", []) if "ip" in i}
        addresses |= self.balanced
        new = addresses.items() - self.services.items()
        self.services = addresses
        for address, instance in new:
            for protocol in ("UDP", "TCP"):
                for place in ("", "far") if self.config.get("far") else ("",):
                    threading.Thread(target=self.ask_path, args=(address, instance, protocol, place), daemon=True).start()

    def note_endpoints(self, slices):
        """Notes which addresses Services lead to."""
        now, found = time.time(), {}
        for s in slices:
            service = s["metadata"].get("labels", {}).get("kubernetes.io/service-name", "")
            found.setdefault(service, []).extend(a for e in s.get("endpoints") or [] if e.get("conditions", {}).get("ready", True) for a in e["addresses"])
        if found != self.endpoints:
            self.endpoints = found
            self.history.write(op="endpoints", begin=now, end=now, services=found)

    def ask_path(self, address, instance, protocol, place):
        """Asks for the SOA of each zone as clients do, again and again. No question waits for the answer to another."""
        last, waiting = {}, threading.Semaphore(PATH_QUESTIONS)

        def ask(zone):
            try:
                if place:
                    questions.enter_network(self.config["far"])
                begin = time.time()
                last[zone] = text = questions.client_text(address, protocol, zone)
                self.history.write(op="path", begin=begin, end=time.time(), address=address, instance=instance, protocol=protocol, zone=zone, vantage=place,
                                   text=text)
            finally:
                waiting.release()

        zones = [name for name, z in self.config["zones"].items() if instance.startswith(z["fleet"] + "-")]
        while not self.stopped.is_set() and self.services.get(address) == instance:
            for zone in zones:
                waiting.acquire()
                threading.Thread(target=ask, args=(zone,), daemon=True).start()
            self.stopped.wait(PATH if set(last.values()) <= {"answer"} else SILENT_PATH)

    def ask(self, address, pod):
        """Asks a server all questions about its zones, again and again."""
        keys = [k for z in self.config["zones"].values() if pod.startswith(z["fleet"] + "-") for k in z["keys"]]
        asker, last = questions.Asker(), {}
        while not self.stopped.is_set() and self.addresses.get(address) == pod:
            begin = time.time()
            answers = asker.ask(address, keys)
            self.history.write(op="sweep", begin=begin, end=time.time(), address=address,
                               answers={k: text for k, text in answers.items() if last.get(k) != text})
            last = answers
            self.sweeps[address] = self.sweeps.get(address, 0) + 1
            self.stopped.wait(max(0, SWEEP - (time.time() - begin)))

    def wait_sweeps(self):
        """Waits until every server has been asked all questions, all of them after now."""
        for address, before in [(a, self.sweeps.get(a, 0)) for a in self.addresses]:
            while address in self.addresses and self.sweeps.get(address, 0) < before + 2:
                time.sleep(0.02)

    def status_path(self, name=""):
        return f"{kube.SYNC}/namespaces/{self.namespace}/syncstatuses" + ("/" + name if name else "")

    def list_statuses(self, client):
        begin = time.time()
        got = client.get(self.status_path())
        items = [outline(i) for i in got["items"]]
        self.history.write(op="status", verb="list", begin=begin, end=time.time(), items=items)
        self.names = [i["name"] for i in items]

    def get_statuses(self, client):
        """Reads some by name. One of a server that does not answer takes its time: lists do not wait for it."""
        for name in random.sample(self.names, min(GETS, len(self.names))):
            begin = time.time()
            try:
                got = outline(client.get(self.status_path(name)))
            except kube.Failed as error:
                if error.code == 404:  # deleted meanwhile
                    continue
                raise
            self.history.write(op="status", verb="get", begin=begin, end=time.time(), items=[got])

    def read_stored(self, client):
        begin, found = time.time(), []
        for plural in PLURALS + ["dnszones", "bind9instances", "bind9clusters"]:
            got = client.get(f"{kube.RECORDS}/namespaces/{self.namespace}/{plural}")
            found += [stored_outline(i, plural.removesuffix("s")) for i in got["items"]]
        got = client.get(f"{kube.ENDPOINTS}/namespaces/{self.namespace}/dnsendpoints")
        found += [stored_outline(i, "dnsendpoint") for i in got["items"]]
        self.history.write(op="stored", begin=begin, end=time.time(), items=found)

    def watch(self, client):
        """Watches from where it was, or from a list, until the watch ends."""
        if self.version is None:
            got = client.get(self.status_path())
            listed = {i["metadata"]["name"]: self.state(i) for i in got["items"]}
            with self.watch_lock:
                self.watched, self.version = listed, got["metadata"]["resourceVersion"]
            self.history.write(op="watch", at=time.time(), type="LIST", states=listed, version=self.version)
        try:
            for line in client.stream(f"{self.status_path()}?watch=1&allowWatchBookmarks=1&resourceVersion={self.version}"
                                      f"&timeoutSeconds={random.choice(WATCH_SECONDS)}"):
                self.take(json.loads(line))
                if self.stopped.is_set():
                    return
            if random.random() < RELIST:
                self.version = None
        except kube.Failed as error:
            if error.code == 410:
                self.version = None
            raise
        finally:
            client.close()

    @staticmethod
    def state(item):
        return [item["objectRef"]["uid"], item["objectRef"].get("generation", 0), item["status"]["phase"]]

    def take(self, event):
        """Applies an event of the watch to the replay."""
        kind, item = event["type"], event["object"]
        if kind == "ERROR":
            self.history.write(op="watch", at=time.time(), type=kind, text=item.get("message", ""))
            self.version = None
            return
        name, state = item["metadata"].get("name", ""), None if kind == "BOOKMARK" else self.state(item)
        with self.watch_lock:
            self.version = item["metadata"]["resourceVersion"]
            if kind == "DELETED":
                self.watched.pop(name, None)
            elif kind != "BOOKMARK":
                self.watched[name] = state
        self.history.write(op="watch", at=time.time(), type=kind, name=name, version=self.version, state=state)

    def rest(self):
        """Looks once at everything, and compares the replay of the watch with the list until they are equal or time is up."""
        begin, differ = time.time(), None
        client = self.client()
        deadline = time.monotonic() + 10
        while differ is None or (differ and time.monotonic() < deadline):
            time.sleep(0.2 if differ else 0)
            try:
                listed = {i["metadata"]["name"]: self.state(i) for i in client.get(self.status_path())["items"]}
            except Exception as error:
                differ = [repr(error)]
                continue
            with self.watch_lock:
                differ = [[n, listed.get(n), self.watched.get(n)] for n in sorted(listed.keys() | self.watched.keys())
                          if listed.get(n) != self.watched.get(n)]
        for look in (self.list_statuses, self.read_stored):
            look(client)
        client.close()
        self.wait_sweeps()
        self.history.write(op="rested", begin=begin, end=time.time(), differ=differ)

    def run(self):
        core, discovery = f"/api/v1/namespaces/{self.namespace}", f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}"
        work = [(self.follow(core + "/pods", self.note_pods), 0.1), (self.follow(core + "/services", self.note_services), 0.1),
                (self.follow(discovery + "/endpointslices", self.note_endpoints), 0.1),
                (self.list_statuses, READ), (self.get_statuses, READ), (self.read_stored, STORED), (self.watch, 0.5)]
        threads = [threading.Thread(target=self.repeat, args=w, daemon=True) for w in work]
        for thread in threads:
            thread.start()
        for line in sys.stdin:
            if line.strip() == "rest":
                self.rest()
                print("rested", flush=True)
        self.stopped.set()
        for thread in threads[:-1]:
            thread.join(15)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        Observer(json.load(file)).run()
