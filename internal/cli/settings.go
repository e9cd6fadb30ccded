// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// A setting of run is one flag. The same setting has a key in the configuration
// file (data-dir: dataDir) and a variable in the environment
// (STATUSSTORE_DATA_DIR; --socket has none). The first of flag, variable, file and default counts.

// flagOnly are the flags that are no settings: where to find the settings, what to
// do with them, and what nobody should do at each start.
var flagOnly = []string{"config", "print-config", "move-damaged-aside", "help"}

// clientVariables are the flags whose variables say where the other commands find
// the agent: exported for those, one must not move the agent's own socket.
var clientVariables = []string{"socket"}

func isSetting(f *pflag.Flag) bool { return !slices.Contains(flagOnly, f.Name) }

// keyOf is the flag's key in the configuration file.
func keyOf(f *pflag.Flag) string {
	words := strings.Split(f.Name, "-")
	for i := range words[1:] {
		words[1+i] = capital(words[1+i])
	}
	return strings.Join(words, "")
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// variableOf is the flag's variable in the environment.
func variableOf(f *pflag.Flag) string {
	return "STATUSSTORE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// fillFlags gives the flags that are not on the command line their values from
// the environment and the configuration file. Any value that can't be used is a
// wrong usage, wherever it is from.
func fillFlags(flags *pflag.FlagSet, file map[string]string, getenv func(string) string) error {
	unused := maps.Clone(file)
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) {
			return
		}
		fromFile, inFile := file[keyOf(f)]
		delete(unused, keyOf(f))
		fromEnv := ""
		if !slices.Contains(clientVariables, f.Name) {
			fromEnv = getenv(variableOf(f))
		}
		var err error
		switch {
		case f.Changed:
		case fromEnv != "":
			if err = f.Value.Set(fromEnv); err != nil {
				err = usagef("%s=%q: %w", variableOf(f), fromEnv, wanted(f, err))
			}
		case inFile:
			if err = f.Value.Set(fromFile); err != nil {
				err = usagef("configuration file: %s: %q: %w", keyOf(f), fromFile, wanted(f, err))
			}
		}
		failed = cmp.Or(failed, err)
	})
	if failed == nil && len(unused) > 0 {
		return usagef("configuration file: unknown key %s", strings.Join(slices.Sorted(maps.Keys(unused)), ", "))
	}
	return failed
}

// wanted says what a flag's value has to be, in place of how parsing it went wrong.
func wanted(f *pflag.Flag, err error) error {
	switch f.Value.Type() {
	case "bool":
		return errors.New("want true or false")
	case "int", "int64", "uint16":
		return errors.New("want a whole number within bounds")
	case "float32":
		return errors.New("want a number")
	case "duration":
		return errors.New("want a duration such as 10s or 1m30s")
	default:
		return err
	}
}

// flagError is a flag on the command line with a value that can't be used.
func flagError(err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := bad.GetFlag()
		return usagef("--%s: %w, got %q", f.Name, wanted(f, bad.Unwrap()), bad.GetValue())
	}
	return &usageError{err}
}

// readConfig reads a configuration file: one flat mapping of keys to plain values.
func readConfig(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, usagef("configuration file %s: %w", path, err)
	}
	if string(text) == "null" {
		return nil, nil
	}
	var values map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // a float64 would lose large numbers
	if err := dec.Decode(&values); err != nil {
		return nil, usagef("configuration file %s: want a mapping of keys to values: %w", path, err)
	}
	config := make(map[string]string, len(values))
	for key, value := range values {
		switch value.(type) {
		case string, bool, json.Number:
			config[key] = fmt.Sprint(value)
		default:
			return nil, usagef("configuration file %s: %s: want one plain value", path, key)
		}
	}
	return config, nil
}

// printConfig writes the settings in the form of a configuration file.
func printConfig(w io.Writer, flags *pflag.FlagSet) error {
	var b bytes.Buffer
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) {
			return
		}
		var value any = f.Value.String()
		switch f.Value.Type() {
		case "int", "int64", "float32", "bool":
			value = json.RawMessage(f.Value.String())
		}
		line, err := yaml.Marshal(map[string]any{keyOf(f): value})
		failed = cmp.Or(failed, err)
		b.Write(line)
	})
	if failed != nil {
		return fmt.Errorf("encode configuration: %w", failed)
	}
	return write(w, b.Bytes())
}

// newLogger logs to w.
func newLogger(w io.Writer, format, level string) *slog.Logger {
	options := &slog.HandlerOptions{}
	var l slog.Level
	// The flag allows only words that are levels.
	if err := l.UnmarshalText([]byte(level)); err == nil {
		options.Level = l
	}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
