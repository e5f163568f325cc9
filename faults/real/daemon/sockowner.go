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

// CanFindSocketOwner reports whether this system can tell which process owns a connection. A
// [PeerProxy] needs that for ways without a fixed dialler.
func CanFindSocketOwner() bool { return runtime.GOOS == "linux" }

// errNobody reports that none of the given processes owns a socket.
var errNobody = errors.New("none of the members has it")

// dialler returns the member whose process has dialled a connection that was accepted from
// loopback. The system's tables map the remote address to a socket, and the processes' descriptors
// name the owner of that socket. The error is errNobody if no process owns the socket any more.
// dialler reads the system's table of all connections, which takes about 0.5 ms for a thousand
// connections.
func dialler(accepted net.Conn, pids map[int]int) (member int, err error) {
	from, to := endpoint(accepted.RemoteAddr()), endpoint(accepted.LocalAddr())
	inode, err := inodeOf(from, to)
	if errors.Is(err, errNobody) {
		inode, err = inodeOf(from, to) // a table is read in parts, so an existing socket may be missed while others are removed
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

// endpoint returns a TCP address, with an IPv4-mapped address as IPv4.
func endpoint(addr net.Addr) netip.AddrPort {
	at, _ := netip.ParseAddrPort(addr.String()) // an invalid address matches no socket
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// inodeOf returns the number of the socket that is connected from one address to the other. Java
// programs make IPv6 sockets, which are in a separate table.
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

// find returns the number of the socket with these two addresses in a table, or an empty string if
// no process has one. A missing table counts as empty.
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

// hex4 and hex6 format an IPv4 address as the tables do: each group of four bytes as a number in
// the machine's byte order.
func hex4(at netip.AddrPort) string {
	bytes := at.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(bytes[:]), at.Port())
}

func hex6(at netip.AddrPort) string {
	mapped := [...]byte{0, 0, 0xFF, 0xFF}
	return fmt.Sprintf("%016X%08X", 0, binary.NativeEndian.Uint32(mapped[:])) + hex4(at)
}

// has reports whether a process has a descriptor that links to the given socket.
func has(pid int, link string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	d, err := os.Open(dir)
	if err != nil {
		return false // the process has ended
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // a partial list is used as far as it goes
	for _, name := range names {
		if to, err := os.Readlink(filepath.Join(dir, name)); err == nil && to == link {
			return true
		}
	}
	return false
}
