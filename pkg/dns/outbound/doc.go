// Package outbound opens every connection that an object of a tenant causes: to DNS servers, to etcd, and to the name servers that
// resolve the host names in these objects. It decides which addresses may be used, counts connections and requests by provider and by
// namespace, and accounts for the memory that the answers take. It knows no protocol: packages wire and coredns speak on its connections.
package outbound
