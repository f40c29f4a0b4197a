/** Tables of figures. */

import { h, type Child } from "./element.ts";

/** A cell: words or a figure, and what to mark it with. */
export interface Cell { text: Child; mark?: "doubtful" | "good" | "faint" | undefined; title?: string | undefined }

/** A column: its heading, its unit below, and its cell for a row. */
export interface Column<Row> {
  heading: Child;
  unit?: string;
  /** Words stand left, figures right. */
  words?: boolean;
  cell: (row: Row, place: number) => Cell | Child;
}

function isCell(value: unknown): value is Cell {
  return typeof value === "object" && value !== null && "text" in value && !(value instanceof Node);
}

/** A table; the first column names its rows. Wide ones scroll by themselves, with the keyboard too. */
export function table<Row>(
  caption: string, columns: Column<Row>[], rows: Row[], rowClass?: (row: Row) => string | null,
): HTMLElement {
  const head = h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.words ? "words" : null },
    column.heading, column.unit ? h("span", { class: "unit" }, column.unit) : null)));
  const body = rows.map((row, place) => h("tr", { class: rowClass?.(row) ?? null }, columns.map((column, at) => {
    const made = column.cell(row, place);
    const cell: Cell = isCell(made) ? made : { text: made };
    const attributes = { class: [column.words ? "words" : "", cell.mark ?? ""].join(" ").trim() || null, title: cell.title };
    return at === 0 ? h("th", { scope: "row", ...attributes }, cell.text) : h("td", attributes, cell.text);
  })));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, head), h("tbody", {}, body)));
}
