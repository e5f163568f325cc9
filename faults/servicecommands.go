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

// EtcdRequests returns the names of requests to etcd, by which scripts name them: those of its methods, in upper case, CANCEL, by which a client says
// that it doesn't wait for an answer any longer, and CALL for a method that is none of etcd's.
func EtcdRequests() []string {
	return strings.Fields(`
		RANGE PUT DELETERANGE TXN COMPACT WATCH
		LEASEGRANT LEASEREVOKE LEASEKEEPALIVE LEASETIMETOLIVE LEASELEASES
		LOCK UNLOCK CAMPAIGN PROCLAIM LEADER OBSERVE RESIGN
		AUTHENTICATE CANCEL CALL
		MEMBERADD MEMBERREMOVE MEMBERUPDATE MEMBERLIST MEMBERPROMOTE
		ALARM STATUS DEFRAGMENT HASH HASHKV SNAPSHOT MOVELEADER DOWNGRADE
		AUTHENABLE AUTHDISABLE AUTHSTATUS
		USERADD USERGET USERDELETE USERLIST USERCHANGEPASSWORD USERGRANTROLE USERREVOKEROLE
		ROLEADD ROLEGET ROLEDELETE ROLELIST ROLEGRANTPERMISSION ROLEREVOKEPERMISSION`)
}
