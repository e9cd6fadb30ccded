// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

const maxBodyBytes = 3 << 20 // as in a real server

// call is one request on its way through the server.
type call struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	target target
	body   []byte
	media  runtime.SerializerInfo
	logged *loggedRequest
	cut    bool          // break the connection in the middle of the answer
	late   time.Duration // how long to keep the answer
}

func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBodyBytes+1))
	if err != nil {
		return nil, apierrors.NewBadRequest("read the body: " + err.Error())
	}
	if len(body) > maxBodyBytes {
		return nil, apierrors.NewRequestEntityTooLargeError("limit is " + strconv.Itoa(maxBodyBytes) + " bytes")
	}
	return body, nil
}

// answer sends obj, whose TypeMeta is set.
func (c *call) answer(code int, obj runtime.Object) {
	var buf bytes.Buffer
	if err := c.media.Serializer.Encode(obj, &buf); err != nil {
		c.fail(err)
		return
	}
	c.send(code, c.media.MediaType, buf.Bytes())
}

func (c *call) fail(err error) {
	status := toStatus(err)
	if c.media.Serializer == nil {
		c.media = mediaTypes[0]
	}
	var buf bytes.Buffer
	if err := c.media.Serializer.Encode(status, &buf); err != nil {
		c.server.options.Logger.Error("encode status", "err", err)
	}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	c.send(int(status.Code), c.media.MediaType, buf.Bytes())
}

func (c *call) send(code int, mediaType string, body []byte) {
	if c.late > 0 {
		timer := time.NewTimer(c.late)
		defer timer.Stop()
		if !c.wait(timer.C, nil) {
			return
		}
	}
	header := c.w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Cache-Control", "no-cache, private")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	c.server.requests.answered(c.logged, code)
	c.w.WriteHeader(code)
	if c.cut {
		c.cutAfter(body)
	}
	// An error here means that the client has gone; there is nobody to tell.
	_, _ = c.w.Write(body)
}

// cutAfter sends the first half of what should be sent and breaks the
// connection.
func (c *call) cutAfter(body []byte) {
	_, _ = c.w.Write(body[:len(body)/2])
	_ = http.NewResponseController(c.w).Flush()
	panic(http.ErrAbortHandler)
}
