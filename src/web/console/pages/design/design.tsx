import { Clapperboard, Radio, Upload } from "lucide";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { VodboxError } from "#clients/typescript/error.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Empty } from "#web/console/components/empty.tsx";
import { Area, Checkbox, Field, Form, Select } from "#web/console/components/form.tsx";
import { Skeleton } from "#web/console/components/list-view.tsx";
import { MoreMenu } from "#web/console/components/more-menu.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { Progress } from "#web/console/components/progress.tsx";
import { ShareBar } from "#web/console/components/share-bar.tsx";
import { ShownOnce } from "#web/console/components/shown-once.tsx";
import { Sparkline } from "#web/console/components/sparkline.tsx";
import { Table } from "#web/console/components/table.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { Icon } from "#web/console/shell/icon.tsx";

const COLORS = [
  "page",
  "surface",
  "sunken",
  "line",
  "strong-line",
  "text",
  "quiet-text",
  "accent",
  "good",
  "busy",
  "bad",
];
const SIZES = ["title", "heading", "body", "small", "tiny"];
const STATES = [
  "queued",
  "processing",
  "running",
  "warned",
  "ready",
  "completed",
  "active",
  "errored",
  "failed",
  "suspended",
];
const VALUES = [3, 5, 4, 8, 12, 9, 14, 11, 16, 18, 13, 17];

/** What the server says when it refuses a form. */
const refuse = async () => {
  throw new VodboxError({
    status: 422,
    code: "validation_failed",
    message: "slug: main is taken",
    details: { slug: ["main is taken"] },
    requestId: "req_example",
  });
};

/** Every part of the console in all of its states; only in builds for development. */
export default function Design() {
  const toast = useToast();
  const [open, setOpen] = useState<"dialog" | "question" | null>(null);
  return (
    <>
      <PageHead title="Design" state={<Badge state="ready" text="Ready" />}>
        <button type="button" class="primary" onClick={() => toast("Saved")}>
          Show a message
        </button>
        <MoreMenu>
          <button type="button">Download</button>
          <a href="#content">Analytics</a>
        </MoreMenu>
      </PageHead>
      <Part title="Colors">
        <div class="sparks">
          {COLORS.map((name) => (
            <span key={name} class="spark">
              <span style={{ height: "2rem", background: `var(--${name})` }} />
              {name}
            </span>
          ))}
        </div>
      </Part>
      <Part title="Sizes of text">
        {SIZES.map((name) => (
          <p key={name} style={{ fontSize: `var(--${name})` }}>
            {name}: whatever people upload plays
          </p>
        ))}
      </Part>
      <Part title="Buttons">
        <div class="row">
          <button type="button" class="primary">
            Primary
          </button>
          <button type="button">
            <Icon node={Upload} /> Default
          </button>
          <button type="button" class="danger">
            Danger
          </button>
          <button type="button" class="quiet">
            Quiet
          </button>
          <button type="button" disabled>
            Disabled
          </button>
          <span class="toggle">
            <button type="button" aria-pressed>
              Grid
            </button>
            <button type="button" aria-pressed={false}>
              List
            </button>
          </span>
          <kbd>Ctrl K</kbd>
        </div>
      </Part>
      <Part title="Form, and what the server refuses">
        <Form submit="Create" onSubmit={refuse}>
          <Field label="Name" name="name" value="Main stage" />
          <Field label="Slug" name="slug" value="main" hint="Part of the address" />
          <Field label="Days" name="days" type="number" value="30" />
          <Select label="Policy" name="policy" options={[["public", "Public"]]} />
          <Area label="Description" name="description" rows={2} />
          <Checkbox label="Low latency" name="low" isChecked hint="About 3 s behind" />
        </Form>
      </Part>
      <Part title="States">
        <div class="row">
          {STATES.map((state) => (
            <Badge key={state} state={state} text={state} />
          ))}
          <Progress value={0.6} label="Encoding" />
        </div>
      </Part>
      <Part title="Table">
        <Table
          items={[
            { id: 1, name: "Main stage", state: "ready" },
            { id: 2, name: "Second stage", state: "errored" },
          ]}
          columns={[
            { title: "Name", cell: ({ name }) => name },
            { title: "Status", cell: ({ state }) => <Badge state={state} text={state} /> },
            {
              title: "Actions",
              cell: () => (
                <div class="row">
                  <button type="button" onClick={() => setOpen("dialog")}>
                    Edit
                  </button>
                  <button type="button" onClick={() => setOpen("question")}>
                    Delete
                  </button>
                </div>
              ),
            },
          ]}
        />
      </Part>
      <Part title="Nothing yet, and waiting">
        <Empty icon={Clapperboard} text="No videos yet. Drop a file anywhere on this page, or choose one.">
          <button type="button" class="primary">
            Upload a video
          </button>
        </Empty>
        <Skeleton />
        <p class="empty">Nothing was found.</p>
      </Part>
      <Part title="Notices">
        <ErrorNotice error={new Error("The file is no video.")} onRetry={() => {}} />
        <ShownOnce text="This key is shown once." secret="svc_example" />
      </Part>
      <Part title="Figures">
        <div class="sparks">
          <Sparkline label="Requests per second" values={VALUES} length={VALUES.length} format={String} />
          <Sparkline label="Errors" values={[]} length={VALUES.length} format={String} />
        </div>
        <ShareBar
          label="Storage"
          whole={100}
          parts={[
            { label: "Videos", value: 55 },
            { label: "Sources", value: 20 },
          ]}
        />
      </Part>
      <Part title="Icons">
        <div class="row">
          <Icon node={Clapperboard} />
          <Icon node={Upload} />
          <Icon node={Radio} />
        </div>
      </Part>
      {open === "dialog" && (
        <Dialog title="Edit" onClose={() => setOpen(null)}>
          <Form submit="Save" onSubmit={async () => setOpen(null)}>
            <Field label="Name" name="name" value="Main stage" required />
          </Form>
        </Dialog>
      )}
      {open === "question" && (
        <ConfirmDialog text="Delete this channel?" onConfirm={() => setOpen(null)} onClose={() => setOpen(null)} />
      )}
    </>
  );
}

const Part = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <section>
    <h2>{title}</h2>
    {children}
  </section>
);
