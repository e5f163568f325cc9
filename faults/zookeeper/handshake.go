package zookeeper

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// The versions of what a member says first to another at its port for elections (QuorumCnxManager of ZooKeeper 3.5 and newer):
// from version 2 on it may name several addresses, which stand in version 1, too, as one.
const (
	version1 = -65536
	version2 = -65535
)

// longestName is how long the addresses may be: as many bytes as ZooKeeper reads.
const longestName = 2048

// introduce passes on how a member introduces itself at another's port for elections. Who is dialled by one with a
// smaller number hangs up, and dials back to the address that this one has named: its own, where it listens. So the
// way that leads there is named instead.
func introduce(r io.Reader, w io.Writer, own, way string) error {
	head := make([]byte, 8+8+4) // version, number, length of the addresses
	n, err := io.ReadFull(r, head[:8])
	version := int64(binary.BigEndian.Uint64(head))
	if err == nil && (version == version1 || version == version2) {
		var more int
		more, err = io.ReadFull(r, head[8:])
		n += more
	}
	length := binary.BigEndian.Uint32(head[16:])
	if n < len(head) || length > longestName { // of another version, or at its end: nothing of it is known
		return passOn(w, head[:n], err)
	}
	name := make([]byte, length)
	if n, err = io.ReadFull(r, name); err != nil {
		return passOn(w, append(head, name[:n]...), err)
	}
	named := strings.ReplaceAll(string(name), own, way)
	if named == string(name) {
		return fmt.Errorf("it says that it is at %q, and not at %s", name, own)
	}
	binary.BigEndian.PutUint32(head[16:], uint32(len(named)))
	return passOn(w, append(head, named...), nil)
}

// passOn writes what was read. Where that came to its end, who copies sees that, too.
func passOn(w io.Writer, read []byte, err error) error {
	if _, failed := w.Write(read); failed != nil {
		return failed
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}
