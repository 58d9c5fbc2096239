//go:build unix

package wire

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// isAlive finds out, without waiting, whether the peer has neither closed the connection nor sent anything unsolicited.
func isAlive(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return true
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	_ = nc.SetDeadline(time.Time{})
	quiet := false
	err = rc.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && quiet
}
