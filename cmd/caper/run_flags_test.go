package main

import (
	"errors"
	"strings"
	"testing"
)

func TestRunFlags(t *testing.T) {
	for _, n := range []string{"", "1"} {
		t.Setenv("WORLD_SIZE", n)
		if stop, err := (runFlags{MetricsAddr: "127.0.0.1:0"}).start(t.TempDir()); err != nil {
			t.Errorf("WORLD_SIZE=%s: %v", n, err)
		} else {
			stop()
		}
	}
	for world, address := range map[string]string{"1": "0.0.0.0:0", "8": ""} {
		t.Setenv("WORLD_SIZE", world)
		if _, err := (runFlags{MetricsAddr: address}).start(t.TempDir()); !errors.As(err, new(usageError)) {
			t.Errorf("WORLD_SIZE=%s --metrics-addr=%s: %v", world, address, err)
		} else if world == "8" && !strings.Contains(err.Error(), "one GPU") {
			t.Errorf("%v", err)
		}
	}
}
