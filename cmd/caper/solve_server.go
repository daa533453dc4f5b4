package main

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"time"

	"caper/model/remote"
)

// serverFlags name a model server.
type serverFlags struct {
	Server        string         `help:"Address of a model server with OpenAI's API, such as http://localhost:8000/v1." placeholder:"URL"`
	ServerModel   string         `help:"The model's name there." placeholder:"NAME"`
	ServerKey     string         `help:"Environment variable that holds the server's token." default:"CAPER_API_KEY" placeholder:"VARIABLE"`
	ServerTimeout time.Duration  `help:"Wall time of one attempt." default:"2m"`
	Attempts      int            `help:"How often a call is tried." default:"4"`
	MaxCalls      int64          `help:"Budget: attempts of all calls together; 0: any number." default:"0"`
	Budget        *remote.Budget `kong:"-"`
	CallCache     string         `help:"Folder that keeps a server's answers by what was asked." type:"path" placeholder:"DIR"`
}

func (f *serverFlags) check() error {
	if f.Server != "" {
		if u, err := url.Parse(f.Server); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("--server %s: want an address such as http://localhost:8000/v1", f.Server)
		}
	}
	if f.MaxCalls < 0 {
		return fmt.Errorf("--max-calls %d: must not be below 0", f.MaxCalls)
	}
	return cmp.Or(checkNumber("--attempts", f.Attempts, 1, 100), checkTimeout(f.ServerTimeout))
}

func (f *serverFlags) open() (*remote.Server, error) {
	if f.CallCache != "" {
		if err := os.MkdirAll(f.CallCache, 0o777); err != nil {
			return nil, fmt.Errorf("--call-cache: %w", err)
		}
	}
	if f.MaxCalls > 0 && f.Budget == nil { // all servers of a command share it
		f.Budget = remote.NewBudget(f.MaxCalls)
	}
	s := remote.NewServer(f.Server, f.ServerModel)
	s.Key, s.Timeout, s.Attempts, s.Budget, s.Cache = os.Getenv(f.ServerKey), f.ServerTimeout, f.Attempts, f.Budget, f.CallCache
	return s, nil
}
