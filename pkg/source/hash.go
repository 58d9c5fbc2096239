package source

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Hash is the SHA-256, in lower-case hexadecimal, of everything in a declaration that affects DNS: owner name, type, TTL
// and values. Which object declares it, and whether it is accepted, is no part of it.
func Hash(decl Declaration) string {
	b := make([]byte, 0, 256)
	b = append(append(b, decl.Key.Name...), 0)
	b = binary.BigEndian.AppendUint16(b, decl.Key.Type)
	b = binary.BigEndian.AppendUint32(b, decl.TTL)
	for _, rdata := range decl.Rdata {
		b = append(append(b, rdata...), 0)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
