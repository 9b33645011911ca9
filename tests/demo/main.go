// Command demo is replaced below.
package main

import _ "github.com/mark3labs/mcp-go/client"

func main() {}
