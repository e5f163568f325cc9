package daemon

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// TestFindInTables checks that sockets are found by both addresses, including IPv6 sockets, and
// that sockets without an owner are not found.
func TestFindInTables(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the tables here are those of another kind of machine")
	}
	at, to := netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("127.0.0.1:10000")
	file := filepath.Join(t.TempDir(), "tcp")
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:2710 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: 0100007F:1F90 0100007F:2711 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1
   3: 0100007F:1F90 0100007F:2710 01 00000000:00000000 00:00000000 00000000     0        0 4 1 0 20 4 30 10 -1
   4: 0100007F:2711 0100007F:1F90 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0
   5: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000100007F:2710 01 00000000:00000000 00:00000000 00000000     0        0 5 1 0
`
	if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := netip.MustParseAddrPort("127.0.0.1:10001")
	for _, c := range []struct{ name, from, to, inode string }{
		{"IPv4", hex4(at), hex4(to), "4"},
		{"the other end", hex4(to), hex4(at), "2"},
		{"IPv6", hex6(at), hex6(to), "5"},
		{"nobody's", hex4(gone), hex4(at), ""},
		{"none", hex4(gone), hex4(to), ""},
	} {
		if inode, err := find(file, c.from, c.to); inode != c.inode || err != nil {
			t.Errorf("%s: %q, %v; want %q", c.name, inode, err, c.inode)
		}
	}
	if inode, err := find(filepath.Join(t.TempDir(), "none"), hex4(at), hex4(to)); inode != "" || err != nil {
		t.Errorf("a table that isn't there: %q, %v", inode, err)
	}
}
