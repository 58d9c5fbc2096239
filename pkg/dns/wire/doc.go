// Package wire sends and receives DNS messages: queries, signed exchanges, zone transfers and NOTIFY. It is the only package
// that does so, and it hides the pitfalls of the DNS library:
//
//   - a reply to a signed request is accepted only when it carries a valid signature of the same key (RFC 8945);
//   - messages passed in are never changed, and each attempt is built, numbered and signed separately;
//   - a server that does not know the key is distinguished from a server that does not know the zone, although both
//     answer NOTAUTH;
//   - every call ends when its context ends, and has its own time limit if the context has none.
//
// A request that was sent is never sent again unless repeating it is harmless (a query, a NOTIFY). Errors are of type *Error
// and contain no secrets. The package has no state except that of a Conn.
package wire
