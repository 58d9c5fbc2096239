// Package wire puts DNS messages on the network and takes them off again: questions, signed exchanges, zone transfers
// and NOTIFY. It is the only package that does so, and it hides what is surprising about the DNS library beneath it:
//
//   - a reply to a signed request is accepted only when it carries a valid signature of the same key (RFC 8945);
//   - messages passed in are never changed, and each attempt is built, numbered and signed anew;
//   - a server that does not know the key is told apart from a server that does not know the zone, although both answer
//     NOTAUTH;
//   - every call ends when its context ends, and has a time limit of its own when the context has none.
//
// A request that was sent is never sent again unless repeating it is harmless (a question, a NOTIFY).
// Errors are of type *Error and carry no secrets. The package keeps no state but that of a Conn.
package wire
