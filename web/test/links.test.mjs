// The links of the first line. Each is tried from the beginning, a second and a half, so that one
// page of a run is enough. REPORT names it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, openAnew } from "./opened.mjs";

test("every link of the first line leads to its part, however much above it was not laid out yet", async () => {
  const { page, close } = await open();
  try {
    const hrefs = await page.$$eval(".top nav a", (links) => links.map((one) => one.getAttribute("href")));
    assert.ok(hrefs.length >= 5, hrefs.join(", "));
    for (const link of hrefs) {
      await openAnew(page);
      await page.waitForSelector("#verdict");
      await page.click(`.top nav a[href="${link}"]`);
      const isThere = () => page.evaluate((link) => {
        const { top } = document.querySelector(link).getBoundingClientRect();
        const isAtTheEnd = scrollY + innerHeight > document.documentElement.scrollHeight - 2;
        return Math.abs(top - 54) < 12 || (isAtTheEnd && top > 0 && top < innerHeight);
      }, link);
      for (let still = 0, tries = 0; still < 5; tries++) {
        assert.ok(tries < 100, `${link} is not reached`);
        still = (await isThere()) ? still + 1 : 0;
        await page.waitForTimeout(40);
      }
    }
  } finally {
    await close();
  }
});
