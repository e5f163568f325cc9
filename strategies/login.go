package strategies

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxAnswer is the maximum length of the reply to a login command, in bytes.
const maxAnswer = 4 << 10

// logIn sends the AUTH and SELECT commands that the options require, and waits for the replies
// until ctx is done.
func logIn(ctx context.Context, conn net.Conn, o *redis.Options) error {
	var commands [][]string
	switch {
	case o.Username != "":
		commands = append(commands, []string{"AUTH", o.Username, o.Password})
	case o.Password != "":
		commands = append(commands, []string{"AUTH", o.Password})
	}
	if o.DB != 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(o.DB)})
	}
	if len(commands) == 0 {
		return nil
	}
	// A deadline in the past ends reads and writes that block.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	for _, words := range commands {
		if err := order(conn, words); err != nil {
			stop()
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return fmt.Errorf("%s: %w", words[0], err)
		}
	}
	if !stop() {
		return ctx.Err() // ctx was done, and its deadline remains on the connection
	}
	return nil
}

// order sends a command with a one-line reply. order returns the error of the reply, if the reply
// is an error.
func order(conn net.Conn, words []string) error {
	request := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		request = fmt.Appendf(request, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := conn.Write(request); err != nil {
		return err
	}
	// No bytes can follow the reply: no other command was sent.
	answer := make([]byte, 0, maxAnswer)
	for len(answer) < 2 || string(answer[len(answer)-2:]) != "\r\n" {
		if len(answer) == maxAnswer {
			return fmt.Errorf("the answer has no end within %d bytes", maxAnswer)
		}
		n, err := conn.Read(answer[len(answer):maxAnswer])
		if answer = answer[:len(answer)+n]; n == 0 && err != nil {
			return err
		}
	}
	if answer[0] == '-' {
		return errors.New(string(answer[1 : len(answer)-2]))
	}
	return nil
}
