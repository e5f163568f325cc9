package kit

import (
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/lockfault/lockfault/internal/input"
)

// BuildDigest returns a checksum of the executable. The checksum distinguishes builds with
// the same version, such as builds of a working copy or of a user's changed strategies.
func BuildDigest() (string, error) {
	name, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's file: %w", err)
	}
	f, err := input.Open(name, input.Program)
	if err != nil {
		return "", fmt.Errorf("read this program's file: %w", err)
	}
	defer f.Close()
	sum := crc32.NewIEEE()
	if _, err := io.CopyBuffer(sum, f, make([]byte, 1<<20)); err != nil {
		return "", fmt.Errorf("read this program's file: %w", err)
	}
	return fmt.Sprintf("%08x", sum.Sum32()), nil
}
