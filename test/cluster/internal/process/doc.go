// Package process starts servers that outlive the command that started them,
// and finds them again by a record that names one process and no other: its
// pid together with its start time and the boot it belongs to. A pid that the
// kernel has given to somebody else is therefore never signaled.
package process
