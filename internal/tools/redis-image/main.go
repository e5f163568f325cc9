// Command redis-image builds a local image from the redis-server of this machine, or from the
// program in its argument. The image is for the world docker on machines without access to a
// registry. The exit status is 0, 3 if no container engine answers, or 1 for other errors.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/lockfault/lockfault/faults/docker"
)

func main() {
	var program string
	if len(os.Args) > 1 {
		program = os.Args[1]
	}
	if err := docker.BuildImage(context.Background(), program); err != nil {
		fmt.Fprintln(os.Stderr, err)
		var none *docker.EngineError
		if errors.As(err, &none) {
			os.Exit(3)
		}
		os.Exit(1)
	}
	fmt.Println(docker.LocalImage)
}
