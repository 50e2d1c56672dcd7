# The kernel of R: IRkernel, whose cells are run here.
#
# IRkernel runs a cell with the package evaluate, which gives output when an expression has
# ended, and what other programs write never; it asks for input where nobody answers.
# Here text is sent while it is written (console.c), plots when their page is full, and
# values are results. An interrupt ends the user's code and nothing of this file's. The
# arguments are those of IRkernel::main().
local({
  dyn.load("/opt/r/console.so")
  kernel <- IRkernel:::Kernel$new(connection_file = commandArgs(TRUE)[[1]])
  executor <- kernel$executor
  # A sender that is ahead waits: libzmq's default is that it drops.
  pbdZMQ::zmq.setsockopt(kernel$sockets$iopub, pbdZMQ::ZMQ.SO()$XPUB_NODROP, 1L)

  request <- NULL # the cell that runs
  failure <- NULL # what its reply says of its error
  folder <- character() # of the cell's plots, where there are any
  devices <- 0L # that it has had
  page_size <- NULL

  # send is for all messages: another thread has some of its own.
  send <- function(socket, parts, serialize = FALSE) invisible(.Call("console_send", socket, parts))
  local({
    imports <- parent.env(asNamespace("IRkernel"))
    unlockBinding("zmq.send.multipart", imports)
    assign("zmq.send.multipart", send, envir = imports)
  })

  # publish sends a message as IRkernel's send_response does, in a tenth of its time.
  publish <- function(type, content) {
    if (isTRUE(request$content$silent)) return()
    sent <<- sent + 1L
    header <- paste0(
      '{"msg_id":"', Sys.getpid(), "-", sent, '","msg_type":"', type, '",', header_end
    )
    parts <- lapply(c(header, parent_header, "{}", content), charToRaw)
    signature <- as.character(openssl::sha256(unlist(parts), key = key))
    send(kernel$sockets$iopub, c(list(delimiter, charToRaw(signature)), parts))
  }
  sent <- 0L
  delimiter <- charToRaw("<IDS|MSG>")
  key <- charToRaw(kernel$connection_info$key)
  parent_header <- header_end <- ""

  json <- function(value) jsonlite::toJSON(value, auto_unbox = TRUE)

  answer <- function(message) {
    request <<- message
    executor$current_request <- message # of what IRdisplay shows
    parent_header <<- json(message$header)
    now <- format(Sys.time(), "%Y-%m-%dT%H:%M:%OS6Z", tz = "UTC")
    header_end <<- sub("^\\{", "", json(list(
      session = message$header$session, username = message$header$username,
      date = now, version = "5.3"
    )))
    if (isTRUE(message$content$silent)) {
      .Call("console_begin", NULL, NULL)
    } else {
      .Call("console_begin", as.character(header_end), as.character(parent_header))
    }
  }

  flush <- function() .Call("console_flush")

  # device is what plots are drawn on that have no other: a file for each page.
  device <- function(...) {
    option <- function(name, default) getOption(paste0("repr.plot.", name), default)
    if (length(folder) == 0L) dir.create(folder <<- tempfile("plots"))
    devices <<- devices + 1L
    width <- option("width", 7)
    height <- option("height", 7)
    resolution <- option("res", 120)
    scale <- resolution / getOption("jupyter.plot_scale", 2)
    page_size <<- list(width = width * scale, height = height * scale)
    grDevices::png(
      file.path(folder, sprintf("%06d-%%06d.png", devices)), width, height, "in",
      res = resolution, pointsize = option("pointsize", 12), family = option("family", "sans"),
      bg = option("bg", "white"), antialias = option("antialias", "gray"), type = "cairo"
    )
  }

  # collect publishes the pages that are full. An open page's file is empty.
  collect <- function() {
    if (length(folder) == 0L) return()
    for (file in sort(list.files(folder, full.names = TRUE))) {
      size <- file.size(file)
      if (size == 0) next
      picture <- readBin(file, "raw", size)
      unlink(file)
      flush()
      publish("display_data", json(list(
        data = list(`text/plain` = "plot", `image/png` = jsonlite::base64_enc(picture)),
        metadata = list(`image/png` = page_size)
      )))
    }
  }

  # finish_plots ends the pages that are open, and publishes them.
  finish_plots <- function() {
    if (length(folder) == 0L) return()
    for (number in grDevices::dev.list()) {
      if (startsWith(device_file(number), folder)) grDevices::dev.off(number)
    }
    collect()
    unlink(folder, recursive = TRUE)
    folder <<- character()
  }

  device_file <- function(number) {
    file <- attr(.Devices[[number]], "filepath")
    if (is.null(file)) "" else file
  }

  show <- function(value) {
    bundle <- IRkernel:::prepare_mimebundle_kernel(value, function(e) {
      base::message("The value cannot be shown: ", conditionMessage(e))
    })
    flush()
    collect()
    if (is.null(bundle$data)) return(finish_plots()) # it was one
    publish("execute_result", json(c(bundle, list(execution_count = executor$execution_count))))
  }

  # place names the call that a condition comes from, where it is the user's.
  place <- function(condition) {
    call <- conditionCall(condition)
    if (is.null(call) || list(call) %in% ours) return("")
    paste0(" in ", deparse(call, nlines = 1L)[[1L]])
  }
  ours <- list(
    quote(eval(expression, globalenv())), quote(withVisible(eval(expression, globalenv()))),
    quote(parse(text = code, keep.source = TRUE, srcfile = file))
  )

  warned <- function(w) {
    restart <- findRestart("muffleWarning", w)
    level <- getOption("warn")
    # It was only signalled, or becomes an error.
    if (is.null(restart) || level >= 2L) return()
    if (level >= 0L) {
      text <- paste0("Warning message", place(w), ":\n", conditionMessage(w), "\n")
      cat(text, file = stderr())
    }
    invokeRestart(restart)
  }

  # line_of returns the line of the cell that an error comes from, or NULL.
  line_of <- function(e, calls, source, statement) {
    if (is.null(source)) {
      found <- regmatches(conditionMessage(e), regexec("cell:([0-9]+):", conditionMessage(e)))[[1L]]
      return(if (length(found)) as.integer(found[[2L]]))
    }
    for (call in rev(calls)) {
      reference <- attr(call, "srcref")
      if (identical(attr(reference, "srcfile"), source)) return(reference[[1L]])
    }
    statement
  }

  # frames describes calls, of many the first and the last.
  frames <- function(calls) {
    if (length(calls) == 0L) return()
    shown <- vapply(calls, function(call) {
      reference <- attr(call, "srcref")
      line <- if (is.null(reference)) "" else paste0("   # line ", reference[[1L]])
      paste0(deparse(call, nlines = 1L)[[1L]], line)
    }, "")
    shown <- paste0(seq_along(shown), ". ", shown)
    if (length(shown) > 40L) c(utils::head(shown, 20L), "...", utils::tail(shown, 20L)) else shown
  }

  failed <- function(e, calls, line) {
    message <- conditionMessage(e)
    name <- class(e)[[1L]]
    if (startsWith(message, "cannot allocate ")) name <- "MemoryError"
    text <- c(
      if (!is.null(line)) sprintf("Cell In[%d], line %d", executor$execution_count, line),
      frames(calls),
      paste0("Error", place(e), ": ", message)
    )
    failure <<- list(ename = name, evalue = message, traceback = as.list(text))
    flush()
    publish("error", json(failure))
  }

  interrupted <- errorCondition("the cell was interrupted", class = "interrupt")

  # run evaluates a cell as R does at its prompt, up to the first error.
  run <- function(code) {
    calls <- list()
    depth <- source <- statement <- NULL
    visibly <- function(expression) {
      depth <<- sys.nframe()
      withVisible(eval(expression, globalenv()))
    }
    evaluate <- function() {
      file <- srcfilecopy("cell", code)
      expressions <- parse(text = code, keep.source = TRUE, srcfile = file)
      source <<- file
      for (i in seq_along(expressions)) {
        statement <<- attr(expressions, "srcref")[[i]][[1L]]
        flush()
        value <- visibly(expressions[[i]])
        collect()
        if (value$visible) show(value$value)
        IRkernel:::set_last_value(value$value)
      }
    }
    handlers <- list(quote(.handleSimpleError), quote(.signalSimpleWarning))
    note <- function(e) {
      if (is.null(depth)) return()
      # Without the frames of this file: four of visibly, and those of this handler.
      found <- sys.calls()[-seq_len(depth + 3L)]
      handling <- Position(function(call) list(call[[1L]]) %in% handlers, found)
      calls <<- utils::head(found, if (is.na(handling)) -1L else handling - 1L)
    }
    tryCatch(
      withCallingHandlers(allowInterrupts(evaluate()), warning = warned, error = note),
      error = function(e) failed(e, calls, line_of(e, calls, source, statement)),
      interrupt = function(e) failed(interrupted, list(), NULL)
    )
    tryCatch(finish_plots(), error = function(e) failed(e, list(), NULL))
    .Call("console_end")
  }

  # quiet reports that R has nothing to do at its end that a user could notice.
  quiet <- function() {
    # showConnections() would collect garbage first, for 100 ms.
    length(getAllConnections()) == 3L && is.null(grDevices::dev.list()) && !exists(".Last", globalenv())
  }

  execute <- function(message) {
    # What was written since the last cell is seen in this one, whose text it is now; an
    # interrupt that came when no cell ran is for none.
    answer(message)
    tryCatch(allowInterrupts(flush()), interrupt = function(e) NULL)
    failure <<- NULL
    count <- executor$execution_count
    publish("execute_input", json(list(code = message$content$code, execution_count = count)))
    run(message$content$code)
    status <- if (is.null(failure)) "ok" else "error"
    reply <- c(list(status = status, execution_count = count, quiet = quiet()), failure)
    if (status == "ok") {
      nothing <- setNames(list(), character())
      reply <- c(reply, list(payload = list(), user_expressions = nothing))
    }
    kernel$send_response("execute_reply", message, "shell", reply)
    if (status == "error") kernel$abort_queued_messages()
    if (!isTRUE(message$content$silent) && isTRUE(message$content$store_history)) {
      executor$execution_count <- count + 1L
    }
  }
  assign("execute", execute, envir = as.environment(executor))

  IRkernel:::replace_in_package("base", "readline", function(prompt = "") {
    stop("there is no input: nobody can answer", call. = FALSE)
  })
  # quit ends a program that the entrypoint runs, not this process.
  process <- Sys.getpid()
  quit <- base::quit
  for (name in c("quit", "q")) {
    IRkernel:::replace_in_package("base", name, function(save = "default", status = 0, runLast = TRUE) {
      restart <- findRestart("quit_program")
      if (!is.null(restart) && Sys.getpid() == process) invokeRestart(restart, status)
      quit(save, status, runLast)
    })
  }
  options(
    device = device,
    jupyter.base_display_func = function(data, metadata = NULL) {
      flush()
      collect()
      executor$display_data(data, metadata)
    },
    crayon.enabled = FALSE, cli.num_colors = 1L, # no escapes
    jupyter.display_mimetypes = setdiff(
      getOption("jupyter.display_mimetypes"), c("text/latex", "text/markdown", "application/pdf")
    ),
    jupyter.pager_classes = character(),
    pager = function(files, header, title, delete.file) {
      for (file in files) writeLines(readLines(file))
      if (delete.file) unlink(files)
    },
    browser = function(url) cat(url, "\n")
  )
  # At its end R waits until all has been sent.
  reg.finalizer(environment(), function(e) {
    if (Sys.getpid() != process) return()
    .Call("console_stop")
    for (socket in kernel$sockets) pbdZMQ::zmq.close(socket)
    pbdZMQ::zmq.ctx.destroy(kernel$zmqctx)
  }, onexit = TRUE)

  .Call("console_start", kernel$sockets$iopub, kernel$connection_info$key)
  suspendInterrupts(kernel$run())
})
