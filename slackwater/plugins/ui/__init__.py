"""`slackwater ui`: a web page that shows a root, for reading only.

    Store ──► RootDocuments: JSON ──► SharedAnswer: one read for all clients ──► PageServer ◄── Gate ◄── browser

The page is `assets/`: index.html, style.css, and a JavaScript module for each part.  It asks every second, and draws
the changes.

Invariants:

* Nothing is written, at the root or elsewhere: every route is a GET.
* The page needs the root alone: no Ray, no Spark, no run.  It shows a finished root as well as a running one.
* Without a token the server listens on this machine only, and answers only requests that use a name of this machine
  (against DNS rebinding); pages of other sites are refused.  With a token every answer about the root needs it, in a
  header.
* Content of files is text: the browser gets JSON, and the page makes text nodes of it.  The content security policy
  allows only the scripts and styles of the package, no frames, and no conversion of text to HTML.
* A large ledger is read page by page.  A read ends with its answer.

Face: `page_server.PageServer`, `gate.AccessToken`.
"""
