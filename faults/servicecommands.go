package faults

import "strings"

// ZooKeeperRequests returns the names by which scripts name requests to ZooKeeper: its operations,
// in upper case. Operations that differ only in their reply share a name: CREATE stands for
// create2, createContainer and createTTL, GETCHILDREN for getChildren2, and SETWATCHES for
// setWatches2.
func ZooKeeperRequests() []string {
	return strings.Fields(`
		CREATE DELETE EXISTS GETDATA SETDATA GETACL SETACL GETCHILDREN SYNC CHECK MULTI MULTIREAD
		CONNECT AUTH SASL SETWATCHES PING CLOSE
		RECONFIG CHECKWATCHES REMOVEWATCHES ADDWATCH GETEPHEMERALS GETALLCHILDRENNUMBER WHOAMI`)
}

// EtcdRequests returns the names by which scripts name requests to etcd: its methods, in upper
// case, plus CANCEL and CALL. CANCEL is the message by which a client stops waiting for a reply.
// CALL is a method that etcd does not define.
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
