"""`slackwater ui`: a root as a web page, for reading only.

Data flow: `RootDocuments` reads a `Store` and puts what it finds into JSON → `SharedAnswer` has each read once for all
who look, in a thread → `PageServer` answers with it, after `Gate` has let the request in → the modules of `assets/`
ask every second and draw.

Invariants:

* Nothing is written, at the root or elsewhere: every route is a GET.
* It needs the root alone: no Ray, no Spark, and nobody who runs; a finished root is shown as well as a living one.
* Without a token it listens to this machine only, and answers only those who call it by a name of this machine
  (DNS rebinding); other sites' pages are refused.  With a token every answer about the root needs it, in a header.
* What comes from files is text: the browser gets JSON, the page makes text nodes of it, and the content security
  policy allows no script, style or frame but those of the package (and no text that becomes HTML).
* A ledger of millions is looked at page by page; no read goes on for longer than it takes to answer.

    page_server.py    PageServer: the routes, and the life of the server
    gate.py           Gate: who is answered, and the headers of every answer
    access_token.py   AccessToken: from a file, the environment or chance
    shared_answer.py  SharedAnswer: one read for all who ask at the same time
    root_documents.py RootDocuments: what the page is told
    cells.py          values from files, cut to what a page shows
    assets/           the page: index.html, style.css, and a JavaScript module for each part
"""
