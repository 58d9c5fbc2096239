// Command coredns is CoreDNS with the plugins that read zones from etcd, and etcd, in one executable: it is what its first
// argument names. They are a module of their own, since what they need is nobody else's.
package main

import "github.com/lockstep-dns/lockstep/test/coredns/servers"

func main() { servers.Main() }
