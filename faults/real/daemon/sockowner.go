package daemon

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// CanFindSocketOwner reports whether this system says which process a connection belongs to, which [PeerProxy] need.
func CanFindSocketOwner() bool { return runtime.GOOS == "linux" }

// errNobody says that no process that was asked about has a socket.
var errNobody = errors.New("none of the members has it")

// dialler returns which of the processes has dialled a connection that was accepted from loopback: the system's
// tables say which socket has that address at the other end, and the processes' descriptors whose it
// is. The error is errNobody if none has it any more. It reads what the system knows of all connections, which takes about half a millisecond where there are a thousand.
func dialler(accepted net.Conn, pids map[int]int) (member int, err error) {
	from, to := endpoint(accepted.RemoteAddr()), endpoint(accepted.LocalAddr())
	inode, err := inodeOf(from, to)
	if errors.Is(err, errNobody) {
		inode, err = inodeOf(from, to) // a table is read in parts, and one that is there may slip through while others go
	}
	if err != nil {
		return 0, err
	}
	link := "socket:[" + inode + "]"
	for member, pid := range pids {
		if has(pid, link) {
			return member, nil
		}
	}
	return 0, errNobody
}

// endpoint returns an address of TCP as an IPv4 one, if it is one.
func endpoint(addr net.Addr) netip.AddrPort {
	at, _ := netip.ParseAddrPort(addr.String()) // what isn't one is nobody's
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// inodeOf returns the number of the socket that is connected from one address to the other. A program in Java makes
// sockets of IPv6, which stand in a table of their own.
func inodeOf(from, to netip.AddrPort) (string, error) {
	var errs []error
	for _, table := range []struct{ file, from, to string }{
		{"/proc/net/tcp", hex4(from), hex4(to)},
		{"/proc/net/tcp6", hex6(from), hex6(to)},
	} {
		inode, err := find(table.file, table.from, table.to)
		if inode != "" {
			return inode, nil
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	return "", errNobody
}

// find returns the number of the socket with these two addresses in a table, empty if there is none or nobody has
// it any more. A table that isn't there is empty.
func find(table, from, to string) (string, error) {
	f, err := os.Open(table)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
		if !strings.Contains(lines.Text(), from) {
			continue
		}
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && fields[1] == from && fields[2] == to && fields[9] != "0" {
			return fields[9], nil
		}
	}
	return "", lines.Err()
}

// hex4 and hex6 write an IPv4 address as the tables have it: each four bytes of it as a number of this machine's.
func hex4(at netip.AddrPort) string {
	bytes := at.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(bytes[:]), at.Port())
}

func hex6(at netip.AddrPort) string {
	mapped := [...]byte{0, 0, 0xFF, 0xFF}
	return fmt.Sprintf("%016X%08X", 0, binary.NativeEndian.Uint32(mapped[:])) + hex4(at)
}

// has reports whether a process has a descriptor that is this link.
func has(pid int, link string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	d, err := os.Open(dir)
	if err != nil {
		return false // it has ended
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // as far as there are any
	for _, name := range names {
		if to, err := os.Readlink(filepath.Join(dir, name)); err == nil && to == link {
			return true
		}
	}
	return false
}
