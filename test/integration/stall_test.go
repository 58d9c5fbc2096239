package integration

import "time"

// Time-outs of seconds are reached after a serious stall of the machine.
const seriousStall = time.Second
