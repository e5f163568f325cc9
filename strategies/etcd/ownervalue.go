package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// signed sets the value of a lock's key to its owner: concurrency.Mutex puts its key without a
// value, in a transaction, and never reads values. The value needs no additional request.
type signed struct {
	clientv3.KV
	owner string
}

// Txn implements [clientv3.KV].
func (s signed) Txn(ctx context.Context) clientv3.Txn { return signedTxn{s.KV.Txn(ctx), s.owner} }

type signedTxn struct {
	clientv3.Txn
	owner string
}

func (t signedTxn) If(list ...clientv3.Cmp) clientv3.Txn {
	return signedTxn{t.Txn.If(list...), t.owner}
}

func (t signedTxn) Then(list ...clientv3.Op) clientv3.Txn {
	for i := range list {
		if list[i].IsPut() && len(list[i].ValueBytes()) == 0 {
			list[i].WithValueBytes([]byte(t.owner))
		}
	}
	return signedTxn{t.Txn.Then(list...), t.owner}
}

func (t signedTxn) Else(list ...clientv3.Op) clientv3.Txn {
	return signedTxn{t.Txn.Else(list...), t.owner}
}
