// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/statusstore/statusstore/journal"
)

// verifyReport is verify's result in JSON and YAML.
type verifyReport struct {
	Path string `json:"path"`
	OK   bool   `json:"ok"`
	journal.VerifyResult
	Found []journal.Problem `json:"found"`
}

func verifyCommand(std *streams) *cobra.Command {
	var f common
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Read everything and print each problem with its place",
		Long: `Read everything: the page structure, all checksums, gaps between sequences, versions
per pod, the index against the events, acks against versions, and the kept figures
against the counted ones. Each problem is printed with its place; the exit code is 1
if there was one.`,
		Example: `  journal-dump verify /var/lib/statusstore
  journal-dump verify -o json journal.db`,
		ValidArgsFunction: completeFile,
		RunE: func(c *cobra.Command, args []string) error {
			return f.read(c.Context(), std, args, func(s *session) error {
				s.damage.count = 0 // a bad meta page is among the problems
				report := verifyReport{Path: s.name, Found: []journal.Problem{}}
				if s.redact != nil {
					report.Path = journal.FileName
				}
				var writeErr error
				r, err := s.reader()
				if err != nil {
					return err
				}
				result, err := r.Verify(s.progress.bytes(c.Context(), "verify"), func(p journal.Problem) {
					p.Key, p.Message = s.redact.word("key", p.Key), s.redact.quoted(p.Message)
					if !s.out.format.text() {
						report.Found = append(report.Found, p)
					} else if writeErr == nil {
						s.out.line("", p.String())
						writeErr = s.flush()
					}
				})
				if err != nil {
					return err
				}
				if writeErr != nil {
					return writeErr
				}
				return s.endVerify(report, result)
			})
		},
	}
	f.registerSource(c)
	f.registerOutput(c)
	f.registerRedact(c)
	return c
}

func (s *session) endVerify(report verifyReport, result journal.VerifyResult) error {
	report.VerifyResult, report.OK = result, result.Problems == 0
	for _, n := range result.Notes {
		s.damage.note("%s", n)
	}
	if !s.out.format.text() {
		if err := s.out.writeOne(report); err != nil {
			return err
		}
	} else if report.OK {
		s.out.line("", fmt.Sprintf("ok: %d events, %d pods, %d acks, %d objects", result.Events, result.Pods, result.Acks, result.Objects))
	}
	if !report.OK {
		return fmt.Errorf("%w: %s: %d problems in %d events, %d pods, %d acks, %d objects", errDamaged, s.name,
			result.Problems, result.Events, result.Pods, result.Acks, result.Objects)
	}
	return nil
}
