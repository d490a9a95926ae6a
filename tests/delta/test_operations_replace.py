"""`replace:` and `remove:`."""

from __future__ import annotations

import pytest

from tests.delta.deltas import Case, apply, check, refused, table

BODY = '''
def f(self, x):
    """Doc."""
    a = prepare(x)
    # about out
    out = self.model(a,
                     x)  # trailing
    return out
'''


@table(
    Case(
        "one statement",
        BODY,
        """
        - name: d
          replace: |
            out = self.model(...)
          with: |
            out = run(a)
        """,
        '''
        def f(self, x):
            """Doc."""
            a = prepare(x)
            # about out
            # ### PATCH START: d
            out = run(a)
            # ### PATCH END: d
            return out
        ''',
    ),
    Case(
        "first and last statement",
        BODY,
        """
        - name: first
          replace: |
            a = ...
          with: |
            a = x
        - name: last
          replace: |
            return out
          with: |
            if out:
                return out
            return None
        """,
        '''
        def f(self, x):
            """Doc."""
            # ### PATCH START: first
            a = x
            # ### PATCH END: first
            # about out
            out = self.model(a,
                             x)  # trailing
            # ### PATCH START: last
            if out:
                return out
            return None
            # ### PATCH END: last
        ''',
    ),
    Case(
        "the only statement of blocks, several matches",
        """
        def f(x):
            if x:
                go()
            else:
                go()
        """,
        """
        - name: d
          replace: |
            go()
          count: 2
          with: |
            stop()
        """,
        """
        def f(x):
            if x:
                # ### PATCH START: d (1/2)
                stop()
                # ### PATCH END: d (1/2)
            else:
                # ### PATCH START: d (2/2)
                stop()
                # ### PATCH END: d (2/2)
        """,
    ),
    Case(
        "a range, comments between its ends included",
        BODY,
        """
        - name: d
          replace:
            from: |
              a = ...
            to: |
              out = ...
          with: |
            out = 1
        """,
        '''
        def f(self, x):
            """Doc."""
            # ### PATCH START: d
            out = 1
            # ### PATCH END: d
            return out
        ''',
    ),
    Case(
        "each of several ranges",
        """
        def f(x):
            a()
            b()
            if x:
                a()
                c()
                b()
        """,
        """
        - name: d
          replace: {from: "a()", to: "b()"}
          count: 2
          with: |
            p()
        """,
        """
        def f(x):
            # ### PATCH START: d (1/2)
            p()
            # ### PATCH END: d (1/2)
            if x:
                # ### PATCH START: d (2/2)
                p()
                # ### PATCH END: d (2/2)
        """,
    ),
    Case(
        "a wrapped range: its comments and blank lines move with it",
        """
        def f(self, x):
            a = 1

            # about b
            b = 2
                # deeper
            return b
        """,
        """
        - name: d
          replace:
            from: |
              a = 1
            to: |
              b = 2
          with: |
            with lock:
                __upstream__
        """,
        """
        def f(self, x):
            # ### PATCH START: d
            with lock:
                a = 1

                # about b
                b = 2
                    # deeper
            # ### PATCH END: d
            return b
        """,
    ),
    Case(
        "wrapped statement: its continuation lines and trailing comment move with it",
        BODY,
        """
        - name: d
          replace: |
            out = self.model(...)
          with: |
            if x:
                __upstream__
            else:
                out = 0
        """,
        '''
        def f(self, x):
            """Doc."""
            a = prepare(x)
            # about out
            # ### PATCH START: d
            if x:
                out = self.model(a,
                                 x)  # trailing
            else:
                out = 0
            # ### PATCH END: d
            return out
        ''',
    ),
    Case(
        "wrapped twice",
        """
        def f(x):
            a(
                x)
        """,
        """
        - name: d
          replace: |
            a(x)
          with: |
            if x:
                __upstream__
            else:
                while x:
                    __upstream__
        """,
        """
        def f(x):
            # ### PATCH START: d
            if x:
                a(
                    x)
            else:
                while x:
                    a(
                        x)
            # ### PATCH END: d
        """,
    ),
    Case(
        "wrapped multi-line strings and lines left of their statement",
        '''
        def f(x):
            if x:
                a = """
          text
                """ + (
            x)
                b = f"""{
            x}
        """
            return a
        ''',
        """
        - name: d
          replace:
            from: |
              a = ...
            to: |
              b = ...
          with: |
            try:
                __upstream__
            finally:
                end()
        """,
        '''
        def f(x):
            if x:
                # ### PATCH START: d
                try:
                    a = """
          text
                """ + (
            x)
                    b = f"""{
            x}
        """
                finally:
                    end()
                # ### PATCH END: d
            return a
        ''',
    ),
    Case(
        "wrapped at lower and deeper indentation, strings and backslashes stay",
        """
        def f(x):
            s = 'a \\
          b'
            t = 1 + \\
              2
        """,
        """
        - name: d
          replace:
            from: |
              s = ...
            to: |
              t = ...
          with: |
            if x:
              while x:
                __upstream__
        """,
        """
        def f(x):
            # ### PATCH START: d
            if x:
              while x:
                s = 'a \\
          b'
                t = 1 + \\
                  2
            # ### PATCH END: d
        """,
    ),
    Case(
        "kept text that stays where it stood is not fenced",
        BODY,
        """
        - name: d
          replace: |
            out = self.model(...)
          with: |
            log(x)
            __upstream__
            log(out)
        - name: e
          replace:
            from: |
              a = ...
            to: |
              return out
          with: |
            __upstream__
            end()
        """,
        '''
        def f(self, x):
            """Doc."""
            a = prepare(x)
            # about out
            # ### PATCH START: d
            log(x)
            out = self.model(a,
                             x)  # trailing
            log(out)
            # ### PATCH END: d
            return out
            # ### PATCH START: e
            end()
            # ### PATCH END: e
        ''',
    ),
    Case(
        "adjacent replacements stay apart",
        """
        def f(x):
            a()
            b()
        """,
        """
        - name: one
          replace: |
            a()
          with: |
            p()
        - name: two
          replace: |
            b()
          with: |
            q()
        """,
        """
        def f(x):
            # ### PATCH START: one
            p()
            # ### PATCH END: one
            # ### PATCH START: two
            q()
            # ### PATCH END: two
        """,
    ),
    Case(
        "insertions beside a replaced statement",
        """
        def f(x):
            a()
        """,
        """
        - name: before
          before: |
            a()
          insert: |
            p()
        - name: instead
          replace: |
            a()
          with: |
            b()
        - name: after
          after: |
            a()
          insert: |
            q()
        """,
        """
        def f(x):
            # ### PATCH START: before
            p()
            # ### PATCH END: before
            # ### PATCH START: instead
            b()
            # ### PATCH END: instead
            # ### PATCH START: after
            q()
            # ### PATCH END: after
        """,
    ),
    Case(
        "decorated definition, with its decorators",
        """
        def f(x):
            @deco(1)
            # why
            @other
            def g():
                return 1
            return g
        """,
        """
        - name: d
          replace: |
            def g(): ...
          with: |
            if x:
                __upstream__
        """,
        """
        def f(x):
            # ### PATCH START: d
            if x:
                @deco(1)
                # why
                @other
                def g():
                    return 1
            # ### PATCH END: d
            return g
        """,
    ),
    Case(
        "the comments that end a block belong to it",
        """
        def f(x):
            if x:
                a()
                # end of if
            b()
        """,
        """
        - name: d
          replace: |
            if x: ...
          with: |
            while x:
                __upstream__
        """,
        """
        def f(x):
            # ### PATCH START: d
            while x:
                if x:
                    a()
                    # end of if
            # ### PATCH END: d
            b()
        """,
    ),
    Case(
        "a call alone may become part of an expression",
        """
        def f(x):
            g(x)  # why
        """,
        """
        - name: d
          replace: |
            g(x)
          with: |
            return not __upstream__
        """,
        """
        def f(x):
            # ### PATCH START: d
            return not g(x)
            # ### PATCH END: d
        """,
    ),
)
def test_replace(case):
    check(case)


@table(
    Case(
        "one-line body: what fits stays there",
        """
        def f(x):
            if x: return 1
            return 2
        """,
        """
        - name: d
          replace: |
            return 1
          with: |
            return 3
        """,
        """
        def f(x):
            # ### PATCH START: d
            if x: return 3
            # ### PATCH END: d
            return 2
        """,
    ),
    Case(
        "one-line body: a block gets lines of its own",
        """
        def f(x):
            while (x and
                   x.y): a(); b(); c()
            return 2
        """,
        """
        - name: d
          replace: |
            b()
          with: |
            if x:
                __upstream__
        """,
        """
        def f(x):
            while (x and
                   # ### PATCH START: d
                   x.y):
                a()
                if x:
                    b()
                c()
                   # ### PATCH END: d
            return 2
        """,
    ),
    Case(
        "one-line body wrapped whole",
        """
        def f(x):
            if x: return 1
            else: return 2
        """,
        """
        - name: d
          replace: |
            return 2
          with: |
            try:
                __upstream__
            finally:
                end()
        """,
        """
        def f(x):
            if x: return 1
            # ### PATCH START: d
            else:
                try:
                    return 2
                finally:
                    end()
            # ### PATCH END: d
        """,
    ),
    Case(
        "one-line body, wrapped by two deltas, with an insertion beside",
        """
        def f(x):
            if x: a(
              x)
        """,
        """
        - name: one
          replace: |
            a(x)
          with: |
            try:
                __upstream__
            finally:
                p()
        - name: two
          replace: |
            a(x)
          with: |
            while x:
                __upstream__
        - name: three
          after: |
            a(x)
          insert: |
            b()
        """,
        """
        def f(x):
            # ### PATCH START: one
            if x:
                try:
                    # ### PATCH START: two
                    while x:
                        a(
              x)
                    # ### PATCH END: two
                finally:
                    p()
            # ### PATCH END: one
                # ### PATCH START: three
                b()
                # ### PATCH END: three
        """,
    ),
    Case(
        "semicolons",
        """
        def f(x):
            a(); b(); c()  # end
        """,
        """
        - name: simple
          replace: |
            a()
          with: |
            p()
        - name: block
          replace: |
            b()
          with: |
            if x:
                q()
        """,
        """
        def f(x):
            # ### PATCH START: simple
            p()
            # ### PATCH END: simple
            # ### PATCH START: block
            if x:
                q()
            c()  # end
            # ### PATCH END: block
        """,
    ),
    Case(
        "tabs",
        b"def f(x):\n\tif x:\n\t\ta(\n\t\t\tx)\n\treturn x\n",
        """
        - name: d
          replace: |
            a(x)
          with: |
            with x:
                __upstream__
        """,
        "def f(x):\n\tif x:\n\t\t# ### PATCH START: d\n\t\twith x:\n\t\t    a(\n\t\t    \tx)\n\t\t# ### PATCH END: d\n\treturn x\n",
    ),
    Case(
        "unicode before the anchor on its line",
        """
        def f(x):
            s = "ö😀"; t = "é"; u = x
        """,
        """
        - name: d
          replace: |
            t = ...
          with: |
            t = "ê"
        """,
        """
        def f(x):
            # ### PATCH START: d
            s = "ö😀"; t = "ê"; u = x
            # ### PATCH END: d
        """,
    ),
)
def test_replace_layouts(case):
    check(case)


@table(
    Case(
        "nested deltas, searched in what is wrapped only",
        """
        def f(x):
            a(x)
            for i in x:
                a(x)
                b(i)
        """,
        """
        - name: wrap
          replace: |
            for i in x: ...
          with: |
            if x:
                __upstream__
          deltas:
            - name: call
              call:
                match: |
                  a(...)
                set: {y: "1"}
            - name: insert
              before: |
                a(x)
              insert: |
                log(i)
            - name: drop
              remove: |
                b(i)
        """,
        """
        def f(x):
            a(x)
            # ### PATCH START: wrap
            if x:
                for i in x:
                    # ### PATCH START: insert
                    log(i)
                    # ### PATCH END: insert
                    # ### PATCH START: call
                    a(x, y=1)
                    # ### PATCH END: call
                    # ### PATCH START: drop
                    # ### PATCH END: drop
            # ### PATCH END: wrap
        """,
    ),
    Case(
        "nested insertions at the edges of the kept text stand inside, others outside",
        """
        def f(x):
            # about a
            a()
        """,
        """
        - name: wrap
          replace: |
            a()
          with: |
            with x:
                __upstream__
          deltas:
            - name: in before
              before: |
                a()
              insert: |
                p()
            - name: in after
              after: |
                a()
              insert: |
                q()
        - name: out before
          before: |
            a()
          insert: |
            r()
        - name: out after
          after: |
            a()
          insert: |
            s()
        """,
        """
        def f(x):
            # ### PATCH START: out before
            r()
            # ### PATCH END: out before
            # about a
            # ### PATCH START: wrap
            with x:
                # ### PATCH START: in before
                p()
                # ### PATCH END: in before
                a()
                # ### PATCH START: in after
                q()
                # ### PATCH END: in after
            # ### PATCH END: wrap
            # ### PATCH START: out after
            s()
            # ### PATCH END: out after
        """,
    ),
    Case(
        "other deltas inside what a delta keeps",
        """
        def f(x):
            if x:
                a(x)
        """,
        """
        - name: inner
          after: |
            a(x)
          insert: |
            b()
        - name: clause
          clause:
            of: |
              if x: ...
            add: |
              else:
                  c()
        - name: wrap
          replace: |
            if x: ...
          with: |
            with x:
                __upstream__
        - name: condition
          expr: |
            x
          within: |
            if x: ...
          nth: 1
          with: |
            __upstream__ or 1
        - name: after
          after: |
            if x: ...
          insert: |
            d()
        """,
        """
        def f(x):
            # ### PATCH START: wrap
            with x:
                # ### PATCH START: condition
                if x or 1:
                # ### PATCH END: condition
                    a(x)
                    # ### PATCH START: inner
                    b()
                    # ### PATCH END: inner
                # ### PATCH START: clause
                else:
                    c()
                # ### PATCH END: clause
            # ### PATCH END: wrap
            # ### PATCH START: after
            d()
            # ### PATCH END: after
        """,
    ),
    Case(
        "two deltas wrap one statement: the first is the outer one",
        """
        def f(x):
            a(x)
        """,
        """
        - name: outer
          replace: |
            a(x)
          with: |
            with p:
                __upstream__
        - name: inner
          replace: |
            a(x)
          with: |
            with q:
                __upstream__
        """,
        """
        def f(x):
            # ### PATCH START: outer
            with p:
                # ### PATCH START: inner
                with q:
                    a(x)
                # ### PATCH END: inner
            # ### PATCH END: outer
        """,
    ),
    Case(
        "a statement that is one expression, changed and wrapped, in any order",
        """
        def f(x):
            a.b(x)
        """,
        """
        - name: whole
          expr: |
            a.b(x)
          with: |
            c(__upstream__)
        - name: callee
          expr: |
            a.b
          with: |
            __upstream__ or d
        - name: whole too
          expr: |
            a.b(x)
          with: |
            not __upstream__
        - name: wrap
          replace: |
            a.b(x)
          with: |
            if x:
                __upstream__
        """,
        """
        def f(x):
            # ### PATCH START: wrap
            if x:
                # ### PATCH START: whole
                # ### PATCH START: whole too
                # ### PATCH START: callee
                c(not (a.b or d)(x))
                # ### PATCH END: callee
                # ### PATCH END: whole too
                # ### PATCH END: whole
            # ### PATCH END: wrap
        """,
    ),
    Case(
        "one delta replaces what another one wraps, in either order",
        """
        def f(x):
            a(x)
        """,
        """
        - name: replaced
          replace: |
            a(x)
          with: |
            b(x)
        - name: wrapped
          replace: |
            a(x)
          with: |
            with q:
                __upstream__
        """,
        """
        def f(x):
            # ### PATCH START: wrapped
            with q:
                # ### PATCH START: replaced
                b(x)
                # ### PATCH END: replaced
            # ### PATCH END: wrapped
        """,
    ),
    Case(
        "kept text used twice, with a nested delta in it",
        """
        def f(x):
            a(x)
        """,
        """
        - name: wrap
          replace: |
            a(x)
          with: |
            if x:
                __upstream__
            else:
                __upstream__
          deltas:
            - name: inner
              expr: |
                x
              with: |
                __upstream__ + 1
        """,
        """
        def f(x):
            # ### PATCH START: wrap
            if x:
                # ### PATCH START: inner (1/2)
                a(x + 1)
                # ### PATCH END: inner (1/2)
            else:
                # ### PATCH START: inner (2/2)
                a(x + 1)
                # ### PATCH END: inner (2/2)
            # ### PATCH END: wrap
        """,
    ),
    Case(
        "each of several matches with its own nested delta",
        """
        def f(x):
            if x: a(1)
            if x: a(2)
        """,
        """
        - name: wrap
          replace: |
            if x: ...
          count: 2
          with: |
            while x:
                __upstream__
          deltas:
            - name: inner
              call:
                match: |
                  a(...)
                callee: b
        """,
        """
        def f(x):
            # ### PATCH START: wrap
            while x:
                # ### PATCH START: inner (1/2)
                if x: b(1)
                # ### PATCH END: inner (1/2)
            while x:
                # ### PATCH START: inner (2/2)
                if x: b(2)
                # ### PATCH END: inner (2/2)
            # ### PATCH END: wrap
        """,
    ),
)
def test_nested(case):
    check(case)


@table(
    Case(
        "parts in different branches",
        """
        def f(self, x):
            q = self.q(x)  # query
            # the core
            o = self.attn(q,
                          x)
            return self.out(o)
        """,
        """
        - name: d
          replace:
            from: |
              q = ...
            to: |
              return ...
          parts:
            query: |
              q = ...
            core: |
              o = self.attn(...)
            end: |
              return ...
          with: |
            if x.ready:
                __query__
                __core__
            else:
                o = __core_value__()
            __end__
        """,
        """
        def f(self, x):
            # ### PATCH START: d
            if x.ready:
                q = self.q(x)  # query
                o = self.attn(q,
                              x)
            else:
                o = __core_value__()
            # ### PATCH END: d
            return self.out(o)
        """,
    ),
    Case(
        "parts that are expressions get the parentheses they need",
        """
        def f(self, x):
            o = self.attn(x, a or b) + (x if a else b)
        """,
        """
        - name: d
          replace: |
            o = ...
          parts:
            attn: |
              self.attn(...)
            either: |
              a or b
            cond: |
              x if a else b
          with: |
            if x:
                o = __attn__.y
            else:
                o = not __either__ and __cond__ + g(__cond__, __either__)
            __attn__
        """,
        """
        def f(self, x):
            # ### PATCH START: d
            if x:
                o = self.attn(x, a or b).y
            else:
                o = not (a or b) and (x if a else b) + g(x if a else b, a or b)
            self.attn(x, a or b)
            # ### PATCH END: d
        """,
    ),
    Case(
        "a part over several lines outside brackets of its own",
        """
        def f(self, x):
            o = (x.a +
                 x.b)
        """,
        """
        - name: d
          replace: |
            o = ...
          parts:
            sum: |
              x.a + x.b
          with: |
            p = __sum__
            o = g(__sum__)
        """,
        """
        def f(self, x):
            # ### PATCH START: d
            p = (x.a +
                 x.b)
            o = g(x.a +
                 x.b)
            # ### PATCH END: d
        """,
    ),
    Case(
        "parts change places",
        """
        def f(x):
            a()
            b()
        """,
        """
        - name: d
          replace:
            from: |
              a()
            to: |
              b()
          parts:
            one: |
              a()
            two: |
              b()
          with: |
            __two__
            __one__
        """,
        """
        def f(x):
            # ### PATCH START: d
            b()
            a()
            # ### PATCH END: d
        """,
    ),
    Case(
        "a part of a nested block, wrapped less deep",
        """
        def f(x):
            if x:
                for i in x:
                    a(i)
                    b(i,
                      x)
        """,
        """
        - name: d
          replace: |
            if x: ...
          parts:
            body: |
              a(i)
              b(...)
          with: |
            i = 0
            __body__
        """,
        """
        def f(x):
            # ### PATCH START: d
            i = 0
            a(i)
            b(i,
              x)
            # ### PATCH END: d
        """,
    ),
    Case(
        "a nested delta inside a part",
        """
        def f(x):
            a(x)
            b(x)
        """,
        """
        - name: d
          replace:
            from: |
              a(x)
            to: |
              b(x)
          parts:
            b: |
              b(x)
          with: |
            if x:
                __b__
          deltas:
            - name: inner
              after: |
                b(x)
              insert: |
                c(x)
        """,
        """
        def f(x):
            # ### PATCH START: d
            if x:
                b(x)
                # ### PATCH START: inner
                c(x)
                # ### PATCH END: inner
            # ### PATCH END: d
        """,
    ),
    Case(
        "placeholders in an f-string and beside strings of several lines",
        """
        def f(x):
            a(x)
        """,
        """
        - name: d
          replace: |
            a(x)
          parts:
            arg: |
              x
          with: |
            if x:
                t = f'''{__arg__}
            text {__arg__!r:>{__arg__}}
            '''
                __upstream__
        """,
        """
        def f(x):
            # ### PATCH START: d
            if x:
                t = f'''{x}
        text {x!r:>{x}}
        '''
                a(x)
            # ### PATCH END: d
        """,
    ),
)
def test_parts(case):
    check(case)


@table(
    Case(
        "statements: first, last, in between, with what trails them",
        """
        def f(x):
            a()  # gone
            b()
            if x:
                c()
                d()
                # end of the if
            e()
        """,
        """
        - name: first
          remove: |
            a()
        - name: last of a block
          remove: |
            d()
        - name: last
          remove: |
            e()
        """,
        """
        def f(x):
            # ### PATCH START: first
            # ### PATCH END: first
            b()
            if x:
                c()
                # ### PATCH START: last of a block
                # ### PATCH END: last of a block
                # end of the if
            # ### PATCH START: last
            # ### PATCH END: last
        """,
    ),
    Case(
        "the only statement of a block, also by two deltas",
        """
        def f(x):
            if x:
                a()
            else:
                b()  # b
                c()  # c
        """,
        """
        - name: a
          remove: |
            a()
        - name: b
          remove: |
            b()
        - name: c
          remove: |
            c()
        """,
        """
        def f(x):
            if x:
                # ### PATCH START: a
                pass
                # ### PATCH END: a
            else:
                # ### PATCH START: b
                # ### PATCH END: b
                # ### PATCH START: c
                pass
                # ### PATCH END: c
        """,
    ),
    Case(
        "a range and a block with its comments",
        """
        def f(x):
            a()

            # about b
            b()
            if x:
                c()
                # end of if
            # about d
            d()
        """,
        """
        - name: range
          remove:
            from: |
              a()
            to: |
              b()
        - name: block
          remove: |
            if x: ...
        """,
        """
        def f(x):
            # ### PATCH START: range
            # ### PATCH END: range
            # ### PATCH START: block
            # ### PATCH END: block
            # about d
            d()
        """,
    ),
    Case(
        "one of several on a line",
        """
        def f(x):
            a(); b(); c()
            d(); e()  # why
            if x: g(); h()
        """,
        """
        - name: first
          remove: |
            a()
        - name: last
          remove: |
            e()
        - name: body
          remove: |
            g()
        """,
        """
        def f(x):
            # ### PATCH START: first
            b(); c()
            # ### PATCH END: first
            # ### PATCH START: last
            d()
            # ### PATCH END: last
            # ### PATCH START: body
            if x: h()
            # ### PATCH END: body
        """,
    ),
    Case(
        "several on a line, by several deltas, and all of them",
        """
        def f(x):
            a(); b(); c(); d()  # end
            if x: e(); g()
            else: h()
        """,
        """
        - {name: b, remove: "b()"}
        - {name: a, remove: "a()"}
        - {name: d, remove: "d()"}
        - {name: g, remove: "g()"}
        - {name: e, remove: "e()"}
        """,
        """
        def f(x):
            # ### PATCH START: b
            # ### PATCH START: a
            # ### PATCH START: d
            c()
            # ### PATCH END: d
            # ### PATCH END: a
            # ### PATCH END: b
            # ### PATCH START: g
            # ### PATCH START: e
            if x: pass
            # ### PATCH END: e
            # ### PATCH END: g
            else: h()
        """,
    ),
    Case(
        "one of several on a line that another delta breaks",
        """
        def f(x):
            a(); b(); c()
        """,
        """
        - {name: b, remove: "b()"}
        - name: block
          before: |
            c()
          insert: |
            if x:
                d()
        """,
        """
        def f(x):
            # ### PATCH START: block
            # ### PATCH START: b
            a()
            # ### PATCH END: b
            if x:
                d()
            c()
            # ### PATCH END: block
        """,
    ),
    Case(
        "one-line body and docstring",
        '''
        def f(x):
            """Doc."""
            if x: return 1
        ''',
        '''
        - name: body
          remove: |
            return 1
        - name: doc
          remove: |
            """Doc."""
        ''',
        """
        def f(x):
            # ### PATCH START: doc
            # ### PATCH END: doc
            # ### PATCH START: body
            if x: pass
            # ### PATCH END: body
        """,
    ),
    Case(
        "removed between lines that belong together: the fence goes where a comment may stand",
        """
        def f(x):
            a = 1; \\
                b = 2
            return a
        """,
        """
        - name: d
          remove: |
            a = 1
        """,
        """
        def f(x):
            # ### PATCH START: d
            b = 2
            # ### PATCH END: d
            return a
        """,
    ),
)
def test_remove(case):
    check(case)


REFUSED = [
    (
        "statements in an expression",
        "def f():\n    a = 1\n",
        "replace: |\n    a = 1\n  with: |\n    b = __upstream__",
        "PK212",
        "cannot be part of an expression",
    ),
    (
        "statements behind a colon",
        "def f():\n    a = 1\n",
        "replace: |\n    a = 1\n  with: |\n    if a: __upstream__",
        "PK212",
        "must be on a line of its own",
    ),
    (
        "statements before a semicolon",
        "def f():\n    a = 1  # b\n",
        "replace: |\n    a = 1\n  with: |\n    __upstream__; b()",
        "PK212",
        "must be on a line of its own",
    ),
    (
        "nothing matches",
        "def f():\n    a = 1\n",
        "replace: |\n    a = 2\n  with: |\n    b = 1",
        "PK201",
        "matches nothing",
    ),
    (
        "part matches nothing",
        "def f():\n    a = 1\n    b = 2\n",
        "replace: |\n    a = 1\n  parts:\n    p: |\n      b = 2\n  with: |\n    __p__",
        "PK201",
        "part 'p' matches nothing in the replaced text",
    ),
    (
        "part matches twice",
        "def f():\n    a(x, x)\n",
        "replace: |\n    a(...)\n  parts:\n    p: |\n      x\n  with: |\n    b(__p__)",
        "PK202",
        "part 'p' matches 2 places",
    ),
    (
        "nested delta outside of what is kept",
        "def f():\n    if a: b()\n    else: c()\n",
        "replace: |\n    if a: ...\n  parts: {p: 'b()'}\n  with: |\n    __p__\n  deltas: [{name: e, call: {match: 'c()', callee: d}}]",
        "PK217",
        "nested delta 'e' lies outside",
    ),
    (
        "nested delta matches only outside of what is wrapped",
        "def f():\n    a()\n    b()\n",
        "replace: |\n    a()\n  with: |\n    __upstream__\n    c()\n  deltas:\n    - name: e\n      remove: |\n        b()",
        "PK201",
        "matches nothing",
    ),
]


@pytest.mark.parametrize(("upstream", "delta", "code", "message"), [pytest.param(*r[1:], id=r[0]) for r in REFUSED])
def test_refused(upstream, delta, code, message):
    found = refused(upstream, f"- name: d\n  {delta}\n")
    assert found.code == code
    assert message in found.message
    assert found.entry == "m.py::f"
    assert found.manifest is not None
    assert found.help


def test_the_place_of_a_misused_placeholder_is_in_the_manifest():
    found = refused("def f():\n    a = 1\n", "- name: d\n  replace: |\n    a = 1\n  with: |\n    c = 2\n    b = (__upstream__)\n")
    assert str(found.manifest) == "m.yaml:14:16"
    assert found.upstream is None or found.upstream.file == "acme/m.py"


def test_the_place_of_a_syntax_error_in_patched_code_is_the_delta():
    upstream = "def f():\n    a()\n    b()\n"
    deltas = """
    - name: good
      after: |
        a()
      insert: |
        c()
    - name: bad
      replace: |
        b()
      with: |
        break
    """
    found = refused(upstream, deltas)
    assert (found.code, found.delta, str(found.upstream)) == ("PK222", "bad", "acme/m.py:3:5")
    assert "'break' outside loop" in found.message
    assert any(line.startswith("> ") and "break" in line for line in found.details)


def test_all_findings_of_all_deltas():
    from afd_patchkit.findings.errors import DeltaError

    deltas = "- name: a\n  remove: |\n    x()\n- name: b\n  remove: |\n    y()\n"
    with pytest.raises(DeltaError) as caught:
        apply("def f():\n    z()\n", deltas)
    assert [(f.code, f.delta) for f in caught.value.findings] == [("PK201", "a"), ("PK201", "b")]
