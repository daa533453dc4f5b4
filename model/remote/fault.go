package remote

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Fault classifies why a call gave no answer.
type Fault string

const (
	Unreachable Fault = "unreachable" // no connection, or one that broke
	Stalled     Fault = "stalled"     // no answer in time
	Refused     Fault = "refused"     // a status that says it is no use to ask again
	Busy        Fault = "busy"        // a status that says to ask later
	Garbled     Fault = "garbled"     // an answer that is not what the API says
	Spent       Fault = "spent"       // the budget of calls is used up
)

// CallError is a call that gave no answer, after all attempts.
type CallError struct {
	Fault   Fault
	Message string
	Tries   int

	again bool          // it is worth another attempt
	after time.Duration // which the server asks to wait
}

func (e *CallError) Error() string {
	return fmt.Sprintf("model server %s: %s (%d attempts)", e.Fault, e.Message, e.Tries)
}

// garbled is an answer that another attempt may mend.
func garbled(format string, args ...any) *CallError {
	return &CallError{Fault: Garbled, Message: fmt.Sprintf(format, args...), again: true}
}

// refusal is the fault that a status tells.
func refusal(r *http.Response, text []byte) *CallError {
	const most = 200
	said := strings.Join(strings.Fields(strings.ToValidUTF8(string(text[:min(len(text), most)]), "")), " ")
	e := &CallError{Fault: Refused, Message: r.Status + ": " + said}
	if r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusRequestTimeout || r.StatusCode >= 500 {
		e.Fault, e.again = Busy, true
		if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && seconds > 0 {
			e.after = time.Duration(seconds) * time.Second
		}
	}
	return e
}
