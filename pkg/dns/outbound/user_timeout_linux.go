package outbound

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// setUserTimeout bounds how long data may stay unacknowledged (RFC 5482).
func setUserTimeout(_, _ string, conn syscall.RawConn) (err error) {
	failure := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
	})
	if failure != nil {
		return failure
	}
	return err
}
