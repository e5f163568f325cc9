package faults

import "strings"

// ZooKeeperRequests returns the names of requests to ZooKeeper, by which scripts name them: those of its operations, in upper case. What
// differs in its answer alone has one name, as CREATE has for create2, createContainer and createTTL, GETCHILDREN for getChildren2 and SETWATCHES for
// setWatches2.
func ZooKeeperRequests() []string {
	return strings.Fields(`
		CREATE DELETE EXISTS GETDATA SETDATA GETACL SETACL GETCHILDREN SYNC CHECK MULTI MULTIREAD
		CONNECT AUTH SASL SETWATCHES PING CLOSE
		RECONFIG CHECKWATCHES REMOVEWATCHES ADDWATCH GETEPHEMERALS GETALLCHILDRENNUMBER WHOAMI`)
}
